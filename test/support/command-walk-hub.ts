/** The part of the walk for the tools of other agents. */

import { Type } from 'typebox';
import { operations as d } from '../../src/operations/index.ts';
import { Ok, type Step, type WalkWorld } from './command-step.ts';

export async function hubCommands(step: Step, { here }: WalkWorld, aid: string, peer: string): Promise<void> {
  const as = ['--as', aid];
  const change = Type.Object({
    file: Type.String(),
    name: Type.String(),
    changed: Type.Boolean(),
    backup: Type.Union([Type.String(), Type.Null()]),
  });
  // The home directory is the user's: nothing is written.
  for (const [word, text] of [
    ['add', /^Would write |already has it/],
    ['rm', /^Would remove |has no svcd/],
  ] as const)
    await step(here, ['mcp', word, 'cursor', '--dry-run'], { schema: change, text, quiet: /mcp\.json$/ });
  await step(here, ['mcp', 'hub', 'add', peer, ...as], {
    schema: d.hubAdd.output,
    text: /^AGENT +KNOWN AS[\s\S]* added /,
    quiet: /^0$/,
  });
  await step(here, ['mcp', 'hub', 'refresh', peer, ...as], {
    schema: d.hubRefresh.output,
    text: /^AGENT +KNOWN AS[\s\S]* added /,
    quiet: /^aid1\S+$/,
  });
  await step(here, ['mcp', 'hub', 'changes', ...as], {
    schema: d.hubChanges.output,
    text: /^Nothing waits for you\.$/,
    quiet: /^$/,
  });
  await step(here, ['mcp', 'hub', 'find', 'book a table', ...as], {
    schema: d.hubFind.output,
    text: /^No tool matches\.$/,
    quiet: /^$/,
  });
  await step(here, ['mcp', 'hub', 'rm', peer, ...as], {
    schema: Ok,
    text: /^The hub no longer uses the tools of /,
    quiet: /^aid1/,
  });
}
