/** Commands that call a tool as a local agent: `svc chat …`, `svc group …`. */
import type { Command } from 'commander';
import { SvcError } from '../../foundation/errors.ts';
import type { Declaration, OutputOf } from '../../operations/operation.ts';
import type { CliContext, ContextOf, View } from './context.ts';
import { examples } from './examples.ts';

type Arguments = Readonly<Record<string, unknown>>;

/** What was typed: its arguments in order, and its options by name. */
export interface Typed<O> {
  readonly words: readonly (string | undefined)[];
  readonly options: O;
}

export interface ToolCommand<D extends Declaration, O> {
  /** Name and arguments, as they are typed: `send <group> [text]`. */
  readonly usage: string;
  readonly about: string;
  /** Whose tool is called. */
  readonly operation: D;
  readonly examples: readonly string[];
  /** Further arguments and options. */
  readonly declare?: (command: Command) => Command;
  /** The arguments of the tool, but for `aid`. */
  readonly input?: (typed: Typed<O>, context: CliContext) => Arguments | Promise<Arguments>;
  readonly view: View<OutputOf<D>>;
  /** A remark for people behind the result. */
  readonly remark?: (output: OutputOf<D>) => string | undefined;
}

/** The local agent that acts; the only one here where none is named. */
interface Acting {
  readonly aid?: string;
}

/** The words and options that commander hands to an action. */
function typedOf<O>(parameters: readonly unknown[]): { readonly typed: Typed<O & Acting>; readonly command: Command } {
  const command = parameters.at(-1) as Command;
  const words = parameters.slice(0, -2) as (string | undefined)[];
  return { typed: { words, options: parameters.at(-2) as O & Acting }, command };
}

/** Adds a command that calls the tool of an operation. */
export function addToolCommand<D extends Declaration, O = object>(
  parent: Command,
  contextOf: ContextOf,
  spec: ToolCommand<D, O>,
): void {
  const { tool } = spec.operation;
  const added = parent
    .command(spec.usage)
    .description(spec.about)
    .addHelpText('after', examples(...spec.examples))
    .option('--aid <aid>', 'the local agent; may be left out where there is only one');
  (spec.declare?.(added) ?? added).action(async (...parameters: unknown[]) => {
    const { typed, command } = typedOf<O>(parameters);
    const context = contextOf(command);
    if (tool === undefined) throw new SvcError('internal');
    const args = (await spec.input?.(typed, context)) ?? {};
    const aid = await context.localAgent(typed.options.aid);
    const output = (await context.client.toolCall({ tool: tool.name, args: { aid, ...args } })) as OutputOf<D>;
    context.show(output, spec.view);
    const remark = spec.remark?.(output);
    if (remark !== undefined) context.note(remark);
  });
}

/** The AIDs that labels stand for; undefined where none is given. */
export async function aidsOf(
  context: CliContext,
  labels: readonly string[] | undefined,
): Promise<readonly string[] | undefined> {
  return labels === undefined ? undefined : Promise.all(labels.map((label) => context.aid(label)));
}

/** The AID that a label stands for; undefined where none is given. */
export async function aidOf(context: CliContext, label: string | undefined): Promise<string | undefined> {
  return label === undefined ? undefined : context.aid(label);
}
