/** `svc evidence`: whether calls of an agent carry a signature that the called service may show to others. */
import type { CommandGroup } from '../command-group.ts';
import { ACTING } from '../takes.ts';

function stateText({ aid, enabled }: { readonly aid: string; readonly enabled: boolean }): string {
  return enabled
    ? `Calls of ${aid} carry evidence: whoever is called can show to others what was asked, and by whom.`
    : `Calls of ${aid} carry no evidence: only the called node knows for sure who calls.`;
}

function stateWord({ enabled }: { readonly enabled: boolean }): string {
  return enabled ? 'on' : 'off';
}

export function evidenceCommands(svc: CommandGroup): void {
  const evidence = svc.group('evidence', 'signatures over calls, for services that need to prove who called', [
    'svc evidence on',
    'svc evidence status --aid aid1…',
  ]);
  evidence.call('status', 'whether calls of an agent carry evidence', {
    takes: ACTING,
    operation: 'evidenceGet',
    input: ({ aid }) => ({ aid }),
    text: stateText,
    quiet: stateWord,
  });
  const add = (word: 'on' | 'off', about: string) =>
    evidence.call(word, about, {
      takes: ACTING,
      operation: 'evidenceSet',
      input: ({ aid }) => ({ aid, enabled: word === 'on' }),
      text: stateText,
      quiet: stateWord,
    });
  add('on', 'sign the calls of an agent from now on');
  add('off', 'sign the calls of an agent no more');
}
