/** An agent of a simulated user. The user has its master key. */
import { createServer, type Server } from 'node:http';
import type { Aid } from '../src/foundation/identity/aid.ts';
import type { operations } from '../src/operations/index.ts';
import type { OutputOf } from '../src/operations/operation.ts';
import { delegateAnew, type TestIdentity } from '../test/support/identities.ts';
import type { SimulatedNode } from './node.ts';

/** The service of the first agent of a node listens here, the next one at the next port. */
export const FIRST_SERVICE_PORT = 9000;

/** The output of `agentBundle`. */
type AgentBundle = OutputOf<(typeof operations)['agentBundle']>;

export class Agent {
  readonly name: string;
  readonly servicePort: number;
  identity: TestIdentity;
  /** Its node. */
  node: SimulatedNode;
  /** Receives each call that reaches the service of this agent. */
  onCall: (caller: string) => void = () => {};
  /** Actions of its user that have not ended. */
  acting = 0;
  /** Attempts to register it. A new operational key ends the links of the former one. */
  registrations = 0;
  /** While it moves. */
  isBusy = false;
  /** Its data, between two nodes. */
  pendingBundle: AgentBundle | null = null;

  constructor(name: string, node: SimulatedNode, servicePort: number, identity: TestIdentity) {
    this.name = name;
    this.node = node;
    this.servicePort = servicePort;
    this.identity = identity;
  }

  get aid(): Aid {
    return this.identity.aid;
  }

  /** Credentials of a new operational key. They count once they are registered. */
  newCredentials(now: number): TestIdentity {
    return delegateAnew(this.identity.master, Math.floor(now / 1000));
  }

  async register(identity: TestIdentity = this.identity): Promise<void> {
    const { operationalPrivateKeyHex, delegationProofHex } = identity.credentials;
    this.registrations++;
    await this.node.call('agentRegister', {
      operational_private_key_hex: operationalPrivateKeyHex,
      delegation_proof_hex: delegationProofHex,
      service_tcp: `127.0.0.1:${this.servicePort}`,
    });
    this.identity = identity;
  }

  /** Starts the service, which answers with its agent and the path. A service ends with the programs of its machine. */
  serve(): void {
    if (this.node.ports.has(this.servicePort)) return;
    this.node.process.runOther(() => {
      const server: Server = createServer((request, response) => {
        // Through a tunnel, the simulated programs name their agent in the path.
        const [, inPath] = /^\/tunnel\/([^/]+)\//.exec(request.url ?? '') ?? [];
        this.onCall(String(request.headers['svc-caller-aid'] ?? inPath));
        request.resume();
        response.end(`${this.aid} ${request.url}`);
      });
      server.listen(this.servicePort);
    });
  }
}
