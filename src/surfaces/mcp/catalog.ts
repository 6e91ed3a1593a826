/** The tool table in the format of MCP. */
import type { Tool } from '@modelcontextprotocol/server';
import type { ToolTable, ToolView } from '../../operations/tool-call.ts';
import { compactInput, compactOutput } from './compact-schema.ts';
import { isShown } from './profiles.ts';

/** Annotations of the protocol. The idempotent hint is omitted if it has its default, and for read-only tools. */
function annotationsOf(view: ToolView): NonNullable<Tool['annotations']> {
  return {
    readOnlyHint: view.readOnly,
    destructiveHint: view.destructive,
    ...(view.idempotent && !view.readOnly ? { idempotentHint: true } : {}),
    openWorldHint: view.openWorld,
  };
}

function listed(view: ToolView): Tool {
  return {
    name: view.name,
    description: view.description,
    inputSchema: { ...compactInput({ ...view.inputSchema }), type: 'object' },
    outputSchema: { ...compactOutput(view.outputSchema), type: 'object' },
    annotations: annotationsOf(view),
  };
}

/** Computed once: the table does not change while the daemon runs. */
export class ToolCatalog {
  readonly table: ToolTable;
  readonly #tools: readonly Tool[];
  readonly #views: ReadonlyMap<string, ToolView>;

  constructor(table: ToolTable) {
    this.table = table;
    this.#tools = table.list().map(listed);
    this.#views = new Map(table.list().map((view) => [view.name, view]));
  }

  /** The tools of the given profiles, or all tools. */
  list(profiles: string | undefined): Tool[] {
    return this.#tools.filter(({ name }) => isShown(name, profiles));
  }

  /** A tool of the given profiles. */
  find(name: string, profiles: string | undefined): ToolView | undefined {
    return isShown(name, profiles) ? this.#views.get(name) : undefined;
  }
}
