/**
 * Runs the guides of `docs/guides/` as they are written. The info string of a code block gives its kind:
 *
 * - `sh home`: commands that the reader types on the machine `home`
 * - `text home`, directly after commands or a tool: lines that the reader sees there
 * - `python home ask.py`: a file that the reader writes on that machine
 * - `text home channel`: a message that starts a turn of the assistant on that machine
 * - `json home chat_send`: arguments with which an assistant on that machine calls an MCP tool
 *
 * `each` stands for every machine; a test carries these out itself. A block without a machine is not run. `…` stands for text that differs from reader to reader.
 */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { eventually } from './eventually.ts';
import { ConfiguredTools } from './lab/configured-tools.ts';
import type { Machine } from './lab/namespaces.ts';
import { MachineShell } from './lab/shell.ts';

export interface GuideStep {
  readonly kind: 'commands' | 'file' | 'tool' | 'event';
  readonly machine: string;
  /** The name of the file or of the tool; empty for commands. */
  readonly name: string;
  readonly text: string;
  /** Lines that the output must contain; null if the guide shows none. */
  readonly shown: string | null;
}

interface Block {
  readonly language: string;
  readonly machine: string;
  readonly name: string;
  readonly text: string;
}

function blocksOf(markdown: string): Block[] {
  const found = markdown.matchAll(/^```(\w+)(?: (\w+))?(?: (\S+))?\n([\s\S]*?)^```$/gm);
  return [...found].map(([, language = '', machine = '', name = '', text = '']) => ({ language, machine, name, text }));
}

function kindOf({ language, machine, name }: Block): GuideStep['kind'] | null {
  if (machine === '') return null;
  if (language === 'sh') return 'commands';
  if (name === '') return null;
  if (language === 'text' && name === 'channel') return 'event';
  return language === 'json' ? 'tool' : 'file';
}

/** The steps of a guide, in order. */
export function guideSteps(markdown: string): GuideStep[] {
  const blocks = blocksOf(markdown);
  return blocks.flatMap((block, i) => {
    const kind = kindOf(block);
    if (kind === null) return [];
    const next = blocks[i + 1];
    const shown = next?.language === 'text' && next.machine === block.machine && next.name === '' ? next.text : null;
    return [{ kind, machine: block.machine, name: block.name, text: block.text, shown }];
  });
}

/** A pattern that matches `gap` for each `…`. */
function patternOf(text: string, gap: string): string {
  return text
    .split('…')
    .map((part) => RegExp.escape(part))
    .join(gap);
}

/** A reader who follows guides on several machines. */
export class Reader implements AsyncDisposable {
  readonly #machines = new Map<string, { readonly shell: MachineShell; readonly tools: ConfiguredTools }>();
  /** The output of each step. */
  readonly #shown: { readonly machine: string; readonly text: string }[] = [];

  /** Opens a shell on a machine, in an empty home directory. */
  sit(name: string, machine: Machine, home: string, programs: readonly string[]): MachineShell {
    const shell = new MachineShell(machine, home, programs);
    this.#machines.set(name, { shell, tools: new ConfiguredTools(machine, home) });
    return shell;
  }

  /** Ends the sessions of all assistants, which would otherwise receive the messages of the next guide. */
  async closeSessions(): Promise<void> {
    await Promise.all([...this.#machines.values()].map(({ tools }) => tools.close()));
  }

  #at(name: string): { readonly shell: MachineShell; readonly tools: ConfiguredTools } {
    const machine = this.#machines.get(name);
    if (machine === undefined) throw new Error(`there is no machine ${name}`);
    return machine;
  }

  /** The text that the reader copies for a word with `…`: the latest match, preferably from another machine. */
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

  /** Carries out a step, which must succeed, and checks that it shows what the guide says. */
  async follow(step: GuideStep): Promise<void> {
    if (step.kind === 'commands') return await this.#type(step);
    if (step.kind === 'tool') return await this.#callTool(step);
    if (step.kind === 'event') return await this.#awaitEvent(step);
    const file = join(this.#at(step.machine).shell.home, step.name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, step.text);
  }

  async #type({ machine, text, shown }: GuideStep): Promise<void> {
    const { shell } = this.#at(machine);
    const typed = text.replace(/[^\s'"=]*…[^\s'"]*/g, (word) => this.#copied(word, machine));
    const before = shell.output.length;
    const expected = linesOf(shown);
    let output = await shell.type(typed);
    // A background command prints its output when it is ready.
    if (/&\s*$/.test(text) && expected.length > 0)
      await eventually(`what ${text} shows`, () => {
        output = shell.output.slice(before);
        return expected.every((line) => line.test(output));
      });
    this.#shown.push({ machine, text: output });
    for (const line of expected) assert.match(output, line, `after ${text}`);
  }

  /** A single call: a tool waits for messages of other agents itself. */
  async #callTool({ machine, name, text, shown }: GuideStep): Promise<void> {
    const result = await this.#at(machine).tools.call(name, JSON.parse(text));
    for (const line of linesOf(shown)) assert.match(result, line, `${name} on ${machine}`);
  }

  async #awaitEvent({ machine, text }: GuideStep): Promise<void> {
    const { tools } = this.#at(machine);
    await tools.start();
    await eventually(`the assistant on ${machine} gets ${text}`, () =>
      tools.events.some((event) => linesOf(text).every((line) => line.test(event))),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { tools } of this.#machines.values()) await tools[Symbol.asyncDispose]();
    await Promise.all([...this.#machines.values()].map(({ shell }) => shell[Symbol.asyncDispose]()));
  }
}

function linesOf(shown: string | null): RegExp[] {
  return (shown?.trimEnd().split('\n') ?? []).map((line) => new RegExp(patternOf(line.trim(), '.*')));
}
