/** Environment variables of `svc`, and hints about mistyped ones. */
import { closestWord } from './closest-word.ts';
import type { CliIo } from './io.ts';

const VARIABLES = ['SVC_API', 'SVC_TOKEN', 'SVC_ACCESS_TOKEN', 'SVC_VIA_PASSWORD', 'SVC_AID'];

/** A hint for each variable that is probably mistyped. */
export function variableHints({ env }: CliIo): string[] {
  const strange = Object.keys(env).filter((name) => name.startsWith('SVC_') && !VARIABLES.includes(name));
  return strange.flatMap((name) => {
    const meant = closestWord(name, VARIABLES);
    return meant === undefined ? [] : [`svc: ${name} is unknown. Did you mean ${meant}?`];
  });
}
