/** Long TCP connections through tunnels: bytes arrive in order, a clean end means that all arrived, and connections outlive their path. */
import net, { type Socket } from 'node:net';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { delegateAnew, type TestIdentity } from '../../test/support/identities.ts';
import type { Agent } from '../agent.ts';
import type { SimulatedNode } from '../node.ts';
import type { Process } from '../process.ts';
import type { Surroundings, Users } from '../user.ts';

/** The service of the echo agent of each node. */
const PORT = 30_000;
const MAX_LINES = 60;
/** Milliseconds between two lines of a client, on average. */
const LINE_PAUSE_MS = 6000;
/** After its last line, a client waits for the rest this long, milliseconds. */
const LAST_WAIT_MS = 240_000;
/** Connections without a path wait for another one for a minute. The search takes some seconds of it. */
const MAX_LOST_MS = 35_000;
const HARMLESS = new Set(['address change', 'nat restart', 'clock jump', 'slow network']);
const SHORT = new Set(['partition', 'one-way partition', 'flapping partition']);

/** An agent with a service that returns every byte. */
class EchoAgent {
  readonly identity: TestIdentity;
  readonly node: SimulatedNode;
  #listensIn: Process | null = null;
  #isPublished = false;

  constructor(node: SimulatedNode, now: number) {
    this.node = node;
    this.identity = delegateAnew(KeyPair.generate(), Math.floor(now / 1000));
  }

  /** Can be repeated until it succeeds. */
  async begin(): Promise<void> {
    this.#listen();
    if (this.#isPublished) return;
    const { operationalPrivateKeyHex, delegationProofHex } = this.identity.credentials;
    await this.node.call('agentRegister', {
      operational_private_key_hex: operationalPrivateKeyHex,
      delegation_proof_hex: delegationProofHex,
      service_tcp: `127.0.0.1:${PORT}`,
    });
    await this.node.call('agentPublish', { aid: this.identity.aid });
    this.#isPublished = true;
  }

  /** The service ends with the programs of its machine. */
  #listen(): void {
    const { process } = this.node;
    if (this.#listensIn === process) return;
    this.#listensIn = process;
    process.runOther(() => {
      const server = net.createServer({ allowHalfOpen: true }, (socket) => {
        socket.on('error', () => {});
        socket.pipe(socket);
      });
      server.listen(PORT);
    });
  }
}

export class StreamUsers implements Users {
  readonly name = 'streams';
  readonly weight = 2;
  readonly #world: Surroundings;
  readonly #echoes = new Map<SimulatedNode, EchoAgent>();
  #opened = 0;
  #whole = 0;
  #reset = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async act(agent: Agent): Promise<void> {
    const { agents, random, attempt } = this.#world;
    const other = random.pick(agents).node;
    if (other === agent.node || !other.isRunning) return;
    const echo = await this.#echoOn(other);
    if (echo === null || !other.isRunning) return;
    const tunnel = await attempt(`${agent.name} opens a tunnel to ${other.name}`, () =>
      agent.node.call('tunnelOpen', { aid: echo.identity.aid, local_aid: agent.aid }),
    );
    if (tunnel === null) return;
    const port = Number(tunnel.listen.split(':').at(-1));
    this.#talk(agent, other, port);
  }

  async #echoOn(node: SimulatedNode): Promise<EchoAgent | null> {
    const { schedule, attempt } = this.#world;
    const echo = this.#echoes.get(node) ?? new EchoAgent(node, schedule.now());
    this.#echoes.set(node, echo);
    return await attempt(`an echo begins on ${node.name}`, () => echo.begin().then(() => echo));
  }

  /** One TCP connection through a tunnel. */
  #talk(agent: Agent, other: SimulatedNode, port: number): void {
    const { schedule, random, violate, note } = this.#world;
    const [near, far] = [agent.node.process, other.process];
    const name = `connection ${this.#opened++} from ${agent.name} to ${other.name}`;
    const begunAt = schedule.now();
    const { registrations } = agent;
    const isSame = (): boolean => agent.registrations === registrations && agent.node.process === near;
    const lines = 1 + random.below(MAX_LINES);
    let sent = '';
    let received = '';
    let hasEnded = false;
    let isOver = false;
    const socket: Socket = near.run(() => net.connect({ port, host: '127.0.0.1', allowHalfOpen: true }));
    const over = (how: 'whole' | 'reset'): void => {
      if (isOver) return;
      isOver = true;
      note(`${name} is ${how}`);
      if (how === 'whole') this.#whole++;
      else this.#reset++;
      socket.destroy();
      if (how === 'whole' && received !== sent)
        violate('a clean end means that all bytes arrived', `${name}: ${received.length} of ${sent.length} bytes`);
      if (how === 'reset' && received.length > 0 && isSame() && this.#mustOutlive(begunAt, other, near, far))
        violate('tunnel connections outlive their path', `${name} was reset after ${received.length} bytes`);
    };
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      if (sent.startsWith(received)) return;
      violate('bytes through tunnels arrive in order', `${name}: ${received.slice(-40)} after ${sent.slice(-40)}`);
      over('reset');
    });
    socket.on('end', () => over(hasEnded ? 'whole' : 'reset'));
    socket.on('error', () => over('reset'));
    socket.on('close', () => over('reset'));
    const speak = (left: number): void => {
      if (isOver || !near.isRunning) return;
      near.deliver(() => {
        if (left === 0) {
          hasEnded = true;
          socket.end();
          return void schedule.after(LAST_WAIT_MS, () => over('reset'));
        }
        const line = `${left} ${name}\n`.repeat(1 + random.below(20));
        sent += line;
        socket.write(line);
        schedule.after(2 * LINE_PAUSE_MS * random.next(), () => speak(left - 1));
      });
    };
    speak(lines);
  }

  /** True if no fault explains that a connection was reset. */
  #mustOutlive(since: number, other: SimulatedNode, near: Process, far: Process): boolean {
    if (other.process !== far || !near.isRunning || !far.isRunning) return false;
    let lostMs = 0;
    for (const { kind, ms } of this.#world.faultsSince(since)) {
      if (SHORT.has(kind)) lostMs += ms;
      else if (!HARMLESS.has(kind)) return false;
    }
    return lostMs < MAX_LOST_MS;
  }

  async audit(): Promise<void> {}

  figures(): Readonly<Record<string, number>> {
    return { opened: this.#opened, whole: this.#whole, reset: this.#reset };
  }
}
