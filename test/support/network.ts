/** A network of real daemons on loopback. */
import { TestDaemon } from './daemon.ts';
import { eventually } from './eventually.ts';

interface Status {
  readonly network_ready: boolean;
  readonly dht_peers: number;
}

/** Waits until a daemon knows other nodes. */
export async function ready(daemon: TestDaemon, peers = 1): Promise<void> {
  await eventually(`${daemon.api} knows ${peers} peers`, async () => {
    const status = await daemon.call<Status>('GET', '/status');
    return status.network_ready && status.dht_peers >= peers;
  });
}

export class TestNetwork {
  readonly daemons: TestDaemon[];

  private constructor(daemons: TestDaemon[]) {
    this.daemons = daemons;
  }

  /** Starts `count` daemons that know each other. The first one is the bootstrap node. */
  static async start(count: number): Promise<TestNetwork> {
    const first = await TestDaemon.start();
    const daemons = [first];
    // A few at a time, because each start uses a core.
    while (daemons.length < count) {
      const batch = Math.min(4, count - daemons.length);
      const started = Array.from({ length: batch }, () => TestDaemon.start({ bootstrap: [first.dhtAddress] }));
      daemons.push(...(await Promise.all(started)));
    }
    await Promise.all(daemons.map((d) => (count === 1 ? Promise.resolve() : ready(d))));
    return new TestNetwork(daemons);
  }

  at(index: number): TestDaemon {
    const daemon = this.daemons[index];
    if (daemon === undefined) throw new RangeError(`no daemon ${index}`);
    return daemon;
  }

  async stop(): Promise<void> {
    await Promise.all(this.daemons.map((d) => d.stop()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
