/**
 * Task guides of `docs/guides/`, carried out as they are written. A block of commands names the machine that it is
 * typed on behind its language (```` ```sh home ````); a block of text behind it is what the reader sees there. In both
 * `…` stands for what differs from reader to reader.
 */
import assert from 'node:assert/strict';
import { eventually } from './eventually.ts';
import type { Machine } from './lab/namespaces.ts';
import { MachineShell } from './lab/shell.ts';

export interface GuideStep {
  readonly machine: string;
  readonly commands: string;
  /** What is to be read among the output; null where the guide does not show it. */
  readonly shown: string | null;
}

interface Block {
  readonly language: string;
  readonly machine: string;
  readonly text: string;
}

function blocksOf(markdown: string): Block[] {
  const found = markdown.matchAll(/^```(\w+)(?: (\w+))?\n([\s\S]*?)^```$/gm);
  return [...found].map(([, language = '', machine = '', text = '']) => ({ language, machine, text }));
}

/** The steps of a guide, in their order. Blocks that name no machine are for reading only. */
export function guideSteps(markdown: string): GuideStep[] {
  const blocks = blocksOf(markdown);
  return blocks.flatMap((block, i) => {
    const next = blocks[i + 1];
    const shown = next?.language === 'text' && next.machine === block.machine ? next.text : null;
    return block.language === 'sh' && block.machine !== ''
      ? [{ machine: block.machine, commands: block.text, shown }]
      : [];
  });
}

/** A pattern that takes any text without blanks where `…` stands. */
function patternOf(text: string, gap: string): string {
  return text
    .split('…')
    .map((part) => RegExp.escape(part))
    .join(gap);
}

/** The machines of a reader who follows guides. */
export class Reader implements AsyncDisposable {
  readonly #shells = new Map<string, MachineShell>();
  /** What each step has shown. */
  readonly #shown: { readonly machine: string; readonly text: string }[] = [];

  /** Sits down at a machine, in an empty home directory. */
  sit(name: string, machine: Machine, home: string, programs: readonly string[]): MachineShell {
    const shell = new MachineShell(machine, home, programs);
    this.#shells.set(name, shell);
    return shell;
  }

  /** What the reader copies in the place of a word with `…`: what was shown last, on another screen if there is such. */
  #copied(word: string, at: string): string {
    const gap = word.includes('/') ? '[^\\s\'"]*\\w' : '\\w+';
    const pattern = new RegExp(patternOf(word, gap), 'g');
    const shown = this.#shown.toReversed();
    for (const { text } of [...shown.filter(({ machine }) => machine !== at), ...shown]) {
      const found = text.match(pattern)?.at(-1);
      if (found !== undefined) return found;
    }
    throw new Error(`nothing like ${word} was shown on any machine`);
  }

  /** Types the commands of a step, which must succeed, and looks for what the guide shows. */
  async follow({ machine, commands, shown }: GuideStep): Promise<string> {
    const shell = this.#shells.get(machine);
    if (shell === undefined) throw new Error(`there is no machine ${machine}`);
    const typed = commands.replace(/[^\s'"=]*…[^\s'"]*/g, (word) => this.#copied(word, machine));
    const before = shell.output.length;
    const expected = (shown?.trimEnd().split('\n') ?? []).map((line) => new RegExp(patternOf(line.trim(), '.*')));
    let output = await shell.type(typed);
    // What goes on in the background shows it when it is ready, and the reader waits for that.
    if (/&\s*$/.test(commands) && expected.length > 0)
      await eventually(`what ${commands} shows`, () => {
        output = shell.output.slice(before);
        return expected.every((line) => line.test(output));
      });
    this.#shown.push({ machine, text: output });
    for (const line of expected) assert.match(output, line, `after ${commands}`);
    return output;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#shells.values()].map((shell) => shell[Symbol.asyncDispose]()));
  }
}
