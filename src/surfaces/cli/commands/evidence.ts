/** `svc evidence`: whether calls of an agent carry a signature that the called service can show to others. */
import type { CommandGroup } from '../command-group.ts';

function stateText({ aid, enabled }: { readonly aid: string; readonly enabled: boolean }): string {
  return enabled
    ? `Calls of ${aid} carry evidence: the called service can prove the request and its caller to others.`
    : `Calls of ${aid} carry no evidence: only the called node can verify the caller.`;
}

function stateWord({ enabled }: { readonly enabled: boolean }): string {
  return enabled ? 'on' : 'off';
}

export function evidenceCommands(svc: CommandGroup): void {
  const evidence = svc
    .group('evidence', 'signed calls, for services that must prove who called', [
      'svc evidence on',
      'svc evidence status --as home',
    ])
    .acting();
  const state = { text: stateText, quiet: stateWord };
  evidence.call('evidenceGet', 'status', 'show whether calls of an agent carry evidence', state);
  evidence.call('evidenceSet', 'on', 'sign the calls of an agent', { sets: { enabled: true }, ...state });
  evidence.call('evidenceSet', 'off', 'stop signing the calls of an agent', { sets: { enabled: false }, ...state });
}
