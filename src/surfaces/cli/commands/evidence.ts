/** `svc evidence`: whether calls of an agent carry a signature that the called service can show to others. */
import type { CommandGroup } from '../command-group.ts';
import { ACTING_AGENT } from '../options.ts';

function stateText({ aid, enabled }: { readonly aid: string; readonly enabled: boolean }): string {
  return enabled
    ? `Calls of ${aid} carry evidence: the called service can prove the request and its caller to others.`
    : `Calls of ${aid} carry no evidence: only the called node can verify the caller.`;
}

function stateWord({ enabled }: { readonly enabled: boolean }): string {
  return enabled ? 'on' : 'off';
}

export function evidenceCommands(svc: CommandGroup): void {
  const evidence = svc.group('evidence', 'signed calls, for services that must prove who called', [
    'svc evidence on',
    'svc evidence status --as home',
  ]);
  evidence.call('status', 'show whether calls of an agent carry evidence', {
    options: ACTING_AGENT,
    operation: 'evidenceGet',
    input: ({ aid }) => ({ aid }),
    text: stateText,
    quiet: stateWord,
  });
  const add = (word: 'on' | 'off', about: string) =>
    evidence.call(word, about, {
      options: ACTING_AGENT,
      operation: 'evidenceSet',
      input: ({ aid }) => ({ aid, enabled: word === 'on' }),
      text: stateText,
      quiet: stateWord,
    });
  add('on', 'sign the calls of an agent');
  add('off', 'stop signing the calls of an agent');
}
