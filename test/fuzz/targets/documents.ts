/** The document of an imported agent is stored completely or not at all. */
import type { ErrorCode } from '../../../src/foundation/errors.ts';
import type { AgentDocument } from '../../../src/foundation/moving/agent-document.ts';
import { compileInput } from '../../../src/operations/input.ts';
import { movingOperations } from '../../../src/operations/moving.ts';
import { parseJsonBody } from '../../../src/surfaces/rest/json-body.ts';
import { furnish, MoverNode } from '../../support/mover-world.ts';
import { testAgent } from '../engine/agents.ts';
import { refusal, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const ALICE = testAgent(1);
const REFUSALS: readonly ErrorCode[] = [
  ...(['invalid_json', 'invalid_request', 'bad_aid', 'bad_file', 'bad_key', 'bad_delegation'] as const),
  ...(['bad_service_address', 'agent_exists', 'too_large', 'quota_exceeded'] as const),
];

/** The schema has checked every member. */
function isDocument(value: object): value is AgentDocument {
  return 'svcd_agent' in value && value.svcd_agent === 1;
}

async function exported(): Promise<Uint8Array> {
  const node = new MoverNode();
  try {
    await node.registry.register({ ...ALICE.credentials, serviceTcp: '127.0.0.1:8080' });
    await furnish(node, ALICE, [testAgent(2), testAgent(3), testAgent(4)]);
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
          if (!isDocument(flat)) throw violation('an invalid document passed its schema', input);
          await node.mover.import(flat);
        } catch (error) {
          if (node.dump() !== before) throw violation('a refused document changed the database', input);
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
