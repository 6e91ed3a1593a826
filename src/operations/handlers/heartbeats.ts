/** Counts heartbeats: a rule of the declarations, the same whichever surface an operation came in by. */
import type { Aid } from '../../foundation/identity/aid.ts';
import { rememberingParseAid } from '../input.ts';
import type { BoundOperation, Declaration } from '../operation.ts';

export interface HeartbeatDependencies {
  readonly record: (aid: Aid) => void;
  /** The local agent that acts: the named one, or the only one. */
  readonly localAid: (named: Aid | undefined) => Aid;
  /** The local agent of a tunnel; undefined where there is no such tunnel. */
  readonly tunnelAid: (id: string) => Aid | undefined;
}

/** The operations with those that count as a heartbeat reporting each success of theirs. */
export function countHeartbeats(
  operations: readonly BoundOperation[],
  { record, localAid, tunnelAid }: HeartbeatDependencies,
): readonly BoundOperation[] {
  const parseAid = rememberingParseAid();
  const aidIn = (value: unknown): Aid | undefined => (typeof value === 'string' ? parseAid(value) : undefined);
  const aliveBy = (rule: Declaration['heartbeat'], input: Readonly<Record<string, unknown>>): Aid | undefined => {
    if (rule === 'local_aid') return localAid(aidIn(input['local_aid']));
    return rule === 'tunnel' ? tunnelAid(String(input['id'])) : aidIn(input['aid']);
  };
  return operations.map((operation) => {
    const { heartbeat } = operation.declaration;
    if (heartbeat === false) return operation;
    return {
      declaration: operation.declaration,
      async run(input, context) {
        // Before it runs: another agent may be registered meanwhile, and then nobody is the only one; a tunnel may be gone.
        const alive = aliveBy(heartbeat, input);
        const output = await operation.run(input, context);
        if (alive !== undefined) record(alive);
        return output;
      },
    };
  });
}
