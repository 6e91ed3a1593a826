/** Group entries, messages between members, and invitations. */
import { decodeEntry, verifyEntry } from '../../../src/capabilities/groups/entry.ts';
import { shapeProblem } from '../../../src/capabilities/groups/kinds.ts';
import { groupLinkText, parseGroupLink } from '../../../src/capabilities/groups/views.ts';
import { type Message, receive, send } from '../../../src/capabilities/groups/wire.ts';
import { equalBytes } from '../../../src/foundation/bytes.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { testAgent } from '../engine/agents.ts';
import { editCbor, editFrames } from '../engine/cbor.ts';
import { bytesOf, decoder, refusal, shapeOf, textOf, violation } from '../engine/properties.ts';
import { vectorBytes, vectorTexts } from '../engine/seeds.ts';
import { linkPair, NEVER, writeInput } from '../engine/streams.ts';
import type { FuzzTarget } from '../engine/target.ts';

const REFUSALS = ['bad_record', 'bad_delegation'] as const;
const NAMES = { caller: testAgent(1).aid, called: testAgent(2).aid };

const entry: FuzzTarget = {
  name: 'group-entry',
  inputs: 3000,
  prepare: () => {
    const seeds = vectorBytes('group', 'entries.*.entry_hex');
    const delegations = new DelegationVerifier();
    return {
      seeds,
      run: async (input) => {
        try {
          const decoded = decodeEntry(input);
          if (!equalBytes(decoded.encoded, input)) throw violation('it has other bytes', input);
          const problem = shapeProblem(decoded);
          if (problem !== null && typeof problem !== 'string') throw violation('a problem without a message', input);
          await verifyEntry(decoded, delegations);
        } catch (error) {
          return refusal(error, REFUSALS);
        }
        if (!seeds.some((seed) => equalBytes(seed, input))) throw violation('an entry was forged', input);
        return 'verified';
      },
    };
  },
};

/** The bytes of messages of one side. */
function sent(...messages: readonly Message[]): Uint8Array {
  const [near, link] = linkPair(NAMES, 'group');
  const chunks: Uint8Array[] = [];
  for (const message of messages) {
    send(link, message);
    const chunk: unknown = near.read();
    if (chunk instanceof Uint8Array) chunks.push(chunk);
  }
  return new Uint8Array(Buffer.concat(chunks));
}

const [GROUP = ''] = vectorTexts('group', 'group_id');
const HAVE = { heads: [GROUP], maxSeq: 20, epoch: new Uint8Array(8).fill(1) };
const ENTRIES = vectorBytes('group', 'entries.*.entry_hex');

/** One message of each kind, from caller and called side. */
const GROUP_MESSAGES: readonly Message[] = [
  { type: 'hello', groupId: GROUP, have: HAVE },
  { type: 'hello', groupId: GROUP, have: HAVE, proof: vectorBytes('group', 'join.proof_hex')[0] ?? new Uint8Array() },
  { type: 'push', groupId: GROUP, entries: ENTRIES.slice(0, 2) },
  { type: 'have', have: HAVE },
  { type: 'refuse', entry: ENTRIES[3] ?? new Uint8Array() },
  { type: 'refuse' },
  { type: 'taken', complete: true },
  { type: 'list', after: 0 },
  { type: 'ids', upTo: 20, ids: [GROUP, GROUP] },
  { type: 'get', ids: [GROUP] },
  { type: 'pull', after: 3 },
  { type: 'entries', upTo: 20, entries: ENTRIES.slice(0, 3) },
  { type: 'done' },
];

export const editGroup = editFrames(4, 0, editCbor);

/** A complete exchange: the caller requests entries, lists its own entries, and sends requested entries. */
const EXCHANGE: readonly Message[] = [
  { type: 'hello', groupId: GROUP, have: HAVE },
  { type: 'list', after: 0 },
  { type: 'get', ids: vectorTexts('group', 'entries.*.entry_id').slice(0, 3) },
  { type: 'pull', after: 2 },
  { type: 'have', have: { ...HAVE, maxSeq: 30 } },
  { type: 'entries', upTo: 25, entries: ENTRIES.slice(0, 3) },
  { type: 'entries', upTo: 30, entries: ENTRIES.slice(3, 5) },
];

/** Each message alone, all messages together, and a complete exchange. */
export function groupSeeds(): Uint8Array[] {
  return [...GROUP_MESSAGES.map((message) => sent(message)), sent(...GROUP_MESSAGES), sent(...EXCHANGE)];
}

const messages: FuzzTarget = {
  name: 'group-messages',
  inputs: 1500,
  maxBytes: 16 * 1024,
  edit: editGroup,
  prepare: () => ({
    seeds: groupSeeds(),
    run: async (input) => {
      const [near, link] = linkPair(NAMES, 'group');
      writeInput(input, near);
      const heard: Message[] = [];
      try {
        for (;;) heard.push(await receive(link, NEVER));
      } catch (error) {
        return `${shapeOf(heard)} ${refusal(error, ['protocol_error'])}`;
      } finally {
        near.destroy();
        link.destroy();
      }
    },
  }),
};

const link = decoder({
  name: 'group-link',
  inputs: 3000,
  edit: () => null,
  words: ['svc://', '/groups/', '#', '?', '%2f', '\n', 'A', '='],
  seeds: () => bytesOf(...vectorTexts('group', 'join.link')),
  decode: (bytes) => parseGroupLink(textOf(bytes)),
  refuses: ['invalid_request', 'bad_aid'],
  encode: (parsed) => new TextEncoder().encode(groupLinkText(parsed)),
});

export const groupTargets: readonly FuzzTarget[] = [entry, messages, link];
