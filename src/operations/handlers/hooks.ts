/** Handlers of the hook operations. */
import { statSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { HookState, Hooks } from '../../capabilities/hooks/hooks.ts';
import type { OnDemandServices, OnDemandState } from '../../capabilities/hooks/on-demand.ts';
import { type Clock, isoTime } from '../../foundation/clock.ts';
import { HOOK_TIMEOUT_MS, MAX_HOOK_COMMAND_CHARS, ON_DEMAND_IDLE_MS } from '../../foundation/domain/hooks.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isHookProof, type ProvenHook } from '../../foundation/hook-proof.ts';
import { newId } from '../../foundation/ids.ts';
import { startable } from '../../foundation/programs.ts';
import type { DeliveryRow } from '../../foundation/store/hooks.ts';
import { DELIVERIES_PAGE_DEFAULT, type hookOperations } from '../hooks.ts';
import type { CallContext, Handlers } from '../operation.ts';
import type { OwnAgents } from './local-agents.ts';
import { timeOrNull } from './values.ts';

/** Programs of one hook at the same time, unless the owner says otherwise. */
const PARALLEL = 4;

export interface HookHandlerDependencies extends OwnAgents {
  readonly hooks: Hooks;
  readonly onDemand: OnDemandServices;
  /** `proof_key` of daemon.json. */
  readonly proofKey: Uint8Array;
  readonly clock: Clock;
}

function hookView({ hook, counts }: HookState) {
  return {
    id: hook.id,
    aid: hook.aid,
    kind: hook.kind,
    command: hook.command,
    shell: hook.shell,
    folder: hook.folder,
    from: hook.senders,
    only_known: hook.onlyKnown,
    parallel: hook.parallel,
    timeout_s: hook.timeoutMs / 1000,
    paused: hook.paused,
    created_at: isoTime(hook.createdAt),
    ...counts,
    skipped: hook.skipped,
  };
}

function deliveryView(one: DeliveryRow) {
  return {
    id: one.id,
    from: one.peer,
    state: one.state,
    idempotency_key: one.key,
    attempts: one.attempts,
    at: isoTime(one.at),
    next_at: one.state === 'waiting' ? isoTime(one.dueAt) : undefined,
    started_at: timeOrNull(one.startedAt),
    ended_at: timeOrNull(one.endedAt),
    exit_code: one.exitCode,
    problem: one.problem === '' ? undefined : one.problem,
  };
}

/** @throws SvcError `access_denied` if the caller is a web page or the panel, or has not proved that it is the owner */
function requireOwner({ fromPage, session }: CallContext, key: Uint8Array, hook: ProvenHook, proof: string): void {
  if (fromPage === true || (session ?? null) !== null)
    throw new SvcError('access_denied', { message: 'A web page cannot choose programs to run. Use "svc".' });
  if (!isHookProof(key, hook, proof))
    throw new SvcError('access_denied', {
      message: 'Only the user that runs the daemon can do this: the proof is wrong. Run "svc" as that user.',
    });
}

/** @throws SvcError `invalid_request` */
function checkCommand(command: readonly string[], shell: boolean, folder: string): void {
  const problem =
    command[0] === ''
      ? 'The name of the program is empty.'
      : command.some((word) => word.includes('\0'))
        ? 'The command contains a null character.'
        : command.reduce((sum, word) => sum + word.length, 0) > MAX_HOOK_COMMAND_CHARS
          ? `The command is longer than ${MAX_HOOK_COMMAND_CHARS} characters. Write a script, and run it.`
          : shell && command.length !== 1
            ? 'Pass the command for the shell as one text.'
            : isAbsolute(folder) && statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true
              ? null
              : 'The folder is not an absolute path of an existing folder.';
  if (problem !== null) throw new SvcError('invalid_request', { message: problem });
  if (!shell) startable(command, process.env);
}

function onDemandView({ row, isRunning, starts, startMs, failure }: OnDemandState) {
  return {
    aid: row.aid,
    service_tcp: `127.0.0.1:${row.port}`,
    command: row.command,
    shell: row.shell,
    folder: row.folder,
    idle_s: row.idleMs / 1000,
    running: isRunning,
    starts,
    start_ms: startMs,
    failure: failure === null ? null : { ...failure, at: isoTime(failure.at) },
  };
}

export function hookHandlers(dependencies: HookHandlerDependencies): Handlers<typeof hookOperations> {
  const { hooks, onDemand, proofKey, clock, requireAgent } = dependencies;
  return {
    hookList: () => ({ hooks: hooks.list().map(hookView) }),
    hookAdd: (input, context) => {
      const { kind, command, shell = false, folder, from = [], only_known: onlyKnown = false } = input;
      const { parallel = PARALLEL, timeout_s = HOOK_TIMEOUT_MS / 1000 } = input;
      requireOwner(context, proofKey, { aid: input.aid, kind, command, shell, folder }, input.proof);
      const aid = requireAgent(input.aid);
      checkCommand(command, shell, folder);
      const timeoutMs = Math.round(timeout_s * 1000);
      const limits = { senders: [...new Set(from)], onlyKnown, parallel, timeoutMs };
      return hookView(hooks.add({ id: newId(), aid, kind, command, shell, folder, ...limits, createdAt: clock.now() }));
    },
    hookPatch: ({ id, paused }) => hookView(hooks.setPaused(id, paused)),
    hookRemove: ({ id }) => {
      hooks.remove(id);
      return { ok: true };
    },
    hookDeliveries: ({ id, state, limit = DELIVERIES_PAGE_DEFAULT, before = Number.MAX_SAFE_INTEGER }) => {
      const found = hooks.deliveries(id, state, before, limit + 1);
      return { deliveries: found.slice(0, limit).map(deliveryView), has_more: found.length > limit };
    },
    hookDelivery: ({ id, delivery }) => {
      const one = hooks.delivery(id, delivery);
      return { ...deliveryView(one), output: one.output };
    },
    hookRetry: ({ id, delivery }) => deliveryView(hooks.retry(id, delivery)),
    hookDrop: ({ id, delivery }) => {
      hooks.drop(id, delivery);
      return { ok: true };
    },
    onDemandList: () => ({ services: onDemand.list().map(onDemandView) }),
    onDemandSet: async (input, context) => {
      const { command, shell = false, folder, idle_s = ON_DEMAND_IDLE_MS / 1000, try: isTried = false } = input;
      requireOwner(context, proofKey, { aid: input.aid, kind: 'serve', command, shell, folder }, input.proof);
      const aid = requireAgent(input.aid);
      checkCommand(command, shell, folder);
      const idleMs = Math.round(idle_s * 1000);
      return onDemandView(await onDemand.set({ aid, command, shell, folder, idleMs }, isTried));
    },
    onDemandRemove: async ({ aid }) => {
      await onDemand.remove(aid);
      return { ok: true };
    },
  };
}
