/** Counts heartbeats as the declarations say, for every surface. */
import type { Aid } from '../../foundation/identity/aid.ts';
import { rememberingParseAid } from '../input.ts';
import type { BoundOperation, Declaration } from '../operation.ts';

export interface HeartbeatDependencies {
  readonly record: (aid: Aid) => void;
  /** The acting local agent: the named one, or the only one. */
  readonly localAid: (named: Aid | undefined) => Aid;
  /** The local agent of a tunnel; undefined if the tunnel does not exist. */
  readonly tunnelAid: (id: string) => Aid | undefined;
}

/** The operations, reporting each success that counts as a heartbeat. */
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
        // Determined before the operation runs: by its end, there may be a second agent, or the tunnel may be closed.
        const alive = aliveBy(heartbeat, input);
        const output = await operation.run(input, context);
        if (alive !== undefined) record(alive);
        return output;
      },
    };
  });
}
