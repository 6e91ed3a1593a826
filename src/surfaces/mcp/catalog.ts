/** The tool table as MCP lists it. */
import type { Tool } from '@modelcontextprotocol/server';
import type { ToolTable, ToolView } from '../../operations/tool-call.ts';
import { compactInput, compactOutput } from './compact-schema.ts';
import { isShown } from './profiles.ts';

function listed(view: ToolView): Tool {
  return {
    name: view.name,
    description: view.description,
    inputSchema: { ...compactInput({ ...view.inputSchema }), type: 'object' },
    outputSchema: { ...compactOutput(view.outputSchema), type: 'object' },
    annotations: {
      readOnlyHint: view.readOnly,
      destructiveHint: view.destructive,
      idempotentHint: view.idempotent,
      openWorldHint: view.openWorld,
    },
  };
}

/** Made once: the table does not change while the daemon runs. */
export class ToolCatalog {
  readonly table: ToolTable;
  readonly #tools: readonly Tool[];
  readonly #views: ReadonlyMap<string, ToolView>;
  readonly #selections = new Map<string, readonly Tool[]>();

  constructor(table: ToolTable) {
    this.table = table;
    this.#tools = table.list().map(listed);
    this.#views = new Map(table.list().map((view) => [view.name, view]));
  }

  /** The tools of profiles, all where none are named. `profiles` has been checked: there are few of them. */
  list(profiles: string | undefined): readonly Tool[] {
    if (profiles === undefined) return this.#tools;
    const known = this.#selections.get(profiles);
    if (known !== undefined) return known;
    const selected = this.#tools.filter(({ name }) => isShown(name, profiles));
    this.#selections.set(profiles, selected);
    return selected;
  }

  /** A tool that the profiles show. */
  find(name: string, profiles: string | undefined): ToolView | undefined {
    return isShown(name, profiles) ? this.#views.get(name) : undefined;
  }
}
