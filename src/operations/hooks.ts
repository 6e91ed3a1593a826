/** Operations on hooks: programs that start when something arrives. */
import { Type } from 'typebox';
import {
  DELIVERY_STATES,
  HOOK_KINDS,
  HOOK_TIMEOUT_MS,
  MAX_HOOK_COMMAND_CHARS,
  MAX_HOOK_PARALLEL,
  MAX_HOOK_SENDERS,
  MAX_HOOK_TIMEOUT_MS,
  MAX_HOOK_WORDS,
  MAX_HOOKS,
  MAX_ON_DEMAND,
  MAX_ON_DEMAND_IDLE_MS,
  ON_DEMAND_IDLE_MS,
} from '../foundation/domain/hooks.ts';
import { declare } from './declare.ts';
import { AidParams, AidText, closed, Id, nullable, Ok, oneOf, Timestamp } from './schemas.ts';

/** Longest path of a folder, characters. */
const MAX_FOLDER_CHARS = 4096;
/** Hex characters of a proof. */
const PROOF_CHARS = 64;
/** Default and highest number of deliveries in one response. */
export const DELIVERIES_PAGE_DEFAULT = 50;
const DELIVERIES_PAGE = 500;

const HookParams = closed({ id: Id });
const DeliveryParams = closed({ id: Id, delivery: Type.Integer({ minimum: 1 }) });
const Command = Type.Array(Type.String({ maxLength: MAX_HOOK_COMMAND_CHARS }), {
  minItems: 1,
  maxItems: MAX_HOOK_WORDS,
  description: 'The program and its arguments.',
});
const Folder = Type.String({ maxLength: MAX_FOLDER_CHARS, description: 'Absolute path: where the program runs.' });
const Proof = Type.String({
  minLength: PROOF_CHARS,
  maxLength: PROOF_CHARS,
  description:
    'HMAC-SHA-256 in hex, with `proof_key` of daemon.json, of the JSON text `["svcd hook 1",aid,kind,command,shell,folder]`.',
});
const Count = Type.Integer({ minimum: 0 });
const OnDemand = Type.Object({
  aid: AidText,
  service_tcp: Type.String({ description: 'Bind the agent to this address.' }),
  command: Type.Array(Type.String()),
  shell: Type.Boolean(),
  folder: Type.String(),
  idle_s: Type.Number(),
  running: Type.Boolean(),
  starts: Count,
  start_ms: nullable(Type.Integer({ description: 'Milliseconds that the last start took.' })),
  failure: nullable(
    Type.Object(
      { at: Timestamp, problem: Type.String(), output: Type.String({ description: 'The end of its output.' }) },
      { description: 'Why the program did not start. Null if it has started since.' },
    ),
  ),
});

const Hook = Type.Object({
  id: Type.String(),
  aid: AidText,
  kind: oneOf([...HOOK_KINDS]),
  command: Type.Array(Type.String()),
  shell: Type.Boolean({ description: 'The command is one text for /bin/sh (on Windows: cmd).' }),
  folder: Type.String(),
  from: Type.Array(AidText),
  only_known: Type.Boolean(),
  parallel: Type.Integer(),
  timeout_s: Type.Number(),
  paused: Type.Boolean(),
  created_at: Timestamp,
  waiting: Count,
  running: Count,
  done: Count,
  gone: Count,
  dead: Count,
  skipped: Type.Integer({ minimum: 0, description: 'Items that found no room and started nothing.' }),
});

const Delivery = Type.Object({
  id: Type.Integer(),
  from: AidText,
  state: oneOf([...DELIVERY_STATES], {
    description: '`gone`: the item no longer existed. `dead`: given up; it can be retried.',
  }),
  idempotency_key: Type.String(),
  attempts: Count,
  at: Timestamp,
  next_at: Type.Optional(Timestamp),
  started_at: nullable(Timestamp),
  ended_at: nullable(Timestamp),
  exit_code: nullable(Type.Integer()),
  problem: Type.Optional(Type.String()),
});

export const hookOperations = declare(
  { tag: 'Hooks' },
  {
    hookList: {
      summary: 'Lists the hooks with the number of their deliveries.',
      route: 'GET /hooks',
      output: Type.Object({ hooks: Type.Array(Hook, { maxItems: MAX_HOOKS }) }),
      tool: { name: 'svc_hooks', description: 'Programs that start when something arrives.' },
    },

    hookAdd: {
      summary:
        'Adds a hook: a program that starts when something arrives. Only for the user of the daemon, see `proof`.',
      route: 'POST /hooks',
      body: closed({
        aid: AidText,
        kind: oneOf([...HOOK_KINDS]),
        command: Command,
        shell: Type.Optional(Type.Boolean({ default: false })),
        folder: Folder,
        from: Type.Optional(Type.Array(AidText, { maxItems: MAX_HOOK_SENDERS, description: 'Senders. Default: all.' })),
        only_known: Type.Optional(Type.Boolean({ default: false, description: 'Only senders that the owner knows.' })),
        parallel: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_HOOK_PARALLEL, default: 4 })),
        timeout_s: Type.Optional(
          Type.Number({ minimum: 1, maximum: MAX_HOOK_TIMEOUT_MS / 1000, default: HOOK_TIMEOUT_MS / 1000 }),
        ),
        proof: Proof,
      }),
      output: Hook,
      status: 201,
      permission: 'local_only',
      errors: ['bad_aid', 'not_found', 'access_denied', 'quota_exceeded', 'wrong_state'],
    },

    hookPatch: {
      summary: 'Pauses or resumes a hook. Items of a paused hook wait.',
      route: 'PATCH /hooks/{id}',
      params: HookParams,
      body: closed({ paused: Type.Boolean() }),
      output: Hook,
      errors: ['not_found'],
    },

    hookRemove: {
      summary: 'Removes a hook with its deliveries and stops its programs. The items are not changed.',
      route: 'DELETE /hooks/{id}',
      params: HookParams,
      output: Ok,
      errors: ['not_found'],
    },

    hookDeliveries: {
      summary: 'Lists the deliveries of a hook, newest first.',
      route: 'GET /hooks/{id}/deliveries',
      params: HookParams,
      query: closed({
        state: Type.Optional(oneOf([...DELIVERY_STATES], { description: 'Only this state.' })),
        limit: Type.Optional(
          Type.Integer({
            minimum: 1,
            maximum: DELIVERIES_PAGE,
            default: DELIVERIES_PAGE_DEFAULT,
            description: 'Maximum number of deliveries.',
          }),
        ),
        before: Type.Optional(Type.Integer({ minimum: 1, description: 'Only deliveries with smaller IDs.' })),
      }),
      output: Type.Object({ deliveries: Type.Array(Delivery), has_more: Type.Boolean() }),
      errors: ['not_found'],
    },

    hookDelivery: {
      summary: 'Shows a delivery with the end of the output of its last run.',
      route: 'GET /hooks/{id}/deliveries/{delivery}',
      params: DeliveryParams,
      output: Type.Object({ ...Delivery.properties, output: Type.String() }),
      errors: ['not_found'],
    },

    hookRetry: {
      summary: 'Starts a dead delivery again.',
      route: 'POST /hooks/{id}/deliveries/{delivery}/retry',
      params: DeliveryParams,
      output: Delivery,
      errors: ['not_found', 'wrong_state'],
    },

    hookDrop: {
      summary: 'Deletes a delivery that does not run. Its item is not changed.',
      route: 'DELETE /hooks/{id}/deliveries/{delivery}',
      params: DeliveryParams,
      output: Ok,
      errors: ['not_found', 'wrong_state'],
    },

    onDemandList: {
      summary: 'Lists the services that start on demand.',
      route: 'GET /on-demand',
      output: Type.Object({ services: Type.Array(OnDemand, { maxItems: MAX_ON_DEMAND }) }),
    },

    onDemandSet: {
      summary:
        'Sets the program that starts with a connection, and stops when none has been open for its idle time. It must listen on 127.0.0.1, at the port in PORT. The proof has the kind `serve`.',
      route: 'PUT /agents/{aid}/on-demand',
      params: AidParams,
      body: closed({
        command: Command,
        shell: Type.Optional(Type.Boolean({ default: false })),
        folder: Folder,
        idle_s: Type.Optional(
          Type.Number({ minimum: 1, maximum: MAX_ON_DEMAND_IDLE_MS / 1000, default: ON_DEMAND_IDLE_MS / 1000 }),
        ),
        try: Type.Optional(
          Type.Boolean({ default: false, description: 'Start it now, and return when it listens or failed.' }),
        ),
        proof: Proof,
      }),
      output: OnDemand,
      permission: 'local_only',
      errors: ['bad_aid', 'not_found', 'access_denied', 'quota_exceeded', 'wrong_state'],
    },

    onDemandRemove: {
      summary: 'Stops the program of a service on demand, and closes its port.',
      route: 'DELETE /agents/{aid}/on-demand',
      params: AidParams,
      output: Ok,
      errors: ['bad_aid', 'not_found'],
    },
  },
);
