/** The document that brings an agent along: all of it is taken in, or nothing. */
import type { ErrorCode } from '../../../src/foundation/errors.ts';
import type { AgentDocument } from '../../../src/foundation/moving/agent-document.ts';
import { compileInput } from '../../../src/operations/input.ts';
import { movingOperations } from '../../../src/operations/moving.ts';
import { parseJsonBody } from '../../../src/surfaces/rest/json-body.ts';
import { furnish, MoverNode } from '../../support/mover-world.ts';
import { person } from '../engine/people.ts';
import { broken, refusal } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const ALICE = person(1);
const REFUSALS: readonly ErrorCode[] = [
  ...(['invalid_json', 'invalid_request', 'bad_aid', 'bad_file', 'bad_key', 'bad_delegation'] as const),
  ...(['bad_service_address', 'agent_exists', 'too_large', 'quota_exceeded'] as const),
];

/** The schema has looked at all of it. */
function isDocument(value: object): value is AgentDocument {
  return 'svcd_agent' in value && (value.svcd_agent === 1 || value.svcd_agent === 2);
}

async function exported(): Promise<Uint8Array> {
  const node = new MoverNode();
  try {
    await node.registry.register({ ...ALICE.credentials, serviceTcp: '127.0.0.1:8080' });
    await furnish(node, ALICE, [person(2), person(3), person(4)]);
    return new TextEncoder().encode(JSON.stringify(node.mover.export(ALICE.aid)));
  } finally {
    node.close();
  }
}

const document: FuzzTarget = {
  name: 'agent-document',
  inputs: 150,
  maxBytes: 32 * 1024,
  edit: () => null,
  words: [
    '"',
    ',',
    ':',
    '[',
    ']',
    '{',
    '}',
    'null',
    '-1',
    '1e15',
    '"__proto__":',
    '00',
    'ff',
    '"state":"none"',
    '""',
    'true',
  ],
  prepare: async () => {
    const read = compileInput(movingOperations.agentImport);
    let node = new MoverNode();
    let before = node.dump();
    return {
      seeds: [await exported()],
      run: async (input) => {
        try {
          const body = parseJsonBody(input);
          const flat = read({ params: {}, query: {}, body });
          if (!isDocument(flat)) throw broken('something else than a document passed its schema', input);
          await node.mover.import(flat);
        } catch (error) {
          if (node.dump() !== before) throw broken('something was kept of a document that was refused', input);
          return refusal(error, REFUSALS);
        }
        node.mover.export(ALICE.aid);
        node.close();
        node = new MoverNode();
        before = node.dump();
        return 'imported';
      },
      close: () => node.close(),
    };
  },
};

export const documentTargets: readonly FuzzTarget[] = [document];
