/** The tool table as MCP lists it. */
import type { Tool } from '@modelcontextprotocol/server';
import type { ToolTable, ToolView } from '../../operations/tool-call.ts';
import { compactInput, compactOutput } from './compact-schema.ts';
import { isShown } from './profiles.ts';

/** Hints of the protocol. That a call may be repeated is left out where it is the default, and where nothing changes. */
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

/** Made once: the table does not change while the daemon runs. */
export class ToolCatalog {
  readonly table: ToolTable;
  readonly #tools: readonly Tool[];
  readonly #views: ReadonlyMap<string, ToolView>;

  constructor(table: ToolTable) {
    this.table = table;
    this.#tools = table.list().map(listed);
    this.#views = new Map(table.list().map((view) => [view.name, view]));
  }

  /** The tools of profiles, all where none are named. */
  list(profiles: string | undefined): Tool[] {
    return this.#tools.filter(({ name }) => isShown(name, profiles));
  }

  /** A tool that the profiles show. */
  find(name: string, profiles: string | undefined): ToolView | undefined {
    return isShown(name, profiles) ? this.#views.get(name) : undefined;
  }
}
