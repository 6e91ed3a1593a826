/** Operations that move agents between nodes. */
import { Type } from 'typebox';
import { AgentDocument, MAX_AGENT_DOCUMENT_BYTES } from '../foundation/moving/agent-document.ts';
import { declare } from './declare.ts';
import { AidParams, AidText } from './schemas.ts';

const COMMON = { tag: 'Agents' };

export const movingOperations = declare(COMMON, {
  agentBundle: {
    summary: 'Returns the bundle of an agent: its keys in clear text and all its data, to move it to another node.',
    route: 'GET /agents/{aid}/bundle',
    isDocument: true,
    params: AidParams,
    output: AgentDocument,
    permission: 'local_only',
    errors: ['bad_aid', 'not_found', 'local_only', 'key_locked', 'too_large'],
  },

  agentImport: {
    summary: 'Imports an agent from its bundle, completely or not at all, and publishes it from this node.',
    route: 'POST /agents/import',
    body: AgentDocument,
    bodyLimit: MAX_AGENT_DOCUMENT_BYTES,
    output: Type.Object({
      aid: AidText,
      status: Type.Literal('registered'),
      service_tcp: Type.String({ description: 'Service that is now bound here. Empty: none.' }),
      services: Type.Integer({ minimum: 0 }),
      tunnels: Type.Integer({ minimum: 0, description: 'Tunnels that listen here.' }),
      origins: Type.Integer({ minimum: 0, description: 'Local addresses served here.' }),
      ports_taken: Type.Array(Type.Integer(), {
        description: 'Ports of its tunnels and local addresses that another program uses here.',
      }),
      notes: Type.Integer({ minimum: 0, description: 'Notes in its mailbox.' }),
      conversations: Type.Integer({ minimum: 0 }),
      groups: Type.Integer({ minimum: 0 }),
    }),
    permission: 'local_only',
    errors: [
      'bad_aid',
      'bad_file',
      'bad_key',
      'bad_delegation',
      'bad_service_address',
      'agent_exists',
      'local_only',
      'too_large',
      'not_writable',
    ],
  },
});
