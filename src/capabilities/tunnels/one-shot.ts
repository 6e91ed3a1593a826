/** A tunnel for one TCP connection: it waits for its client, then lives as long as that connection. */
import type { Clock, Timer } from '../../foundation/clock.ts';
import { CLIENT_WAIT_MS } from '../../foundation/domain/tunnels.ts';
import type { Tunnel } from './tunnel.ts';

export class OneShot {
  readonly #tunnel: Tunnel;
  readonly #clock: Clock;
  #timer: Timer | null = null;

  constructor(tunnel: Tunnel, clock: Clock) {
    this.#tunnel = tunnel;
    this.#clock = clock;
  }

  /** Begins to wait; returns `host:port`. */
  async listen(): Promise<string> {
    await this.#tunnel.listen();
    const { listen } = this.#tunnel.info();
    this.#timer = this.#clock.after(CLIENT_WAIT_MS, () => void this.close());
    this.#tunnel.serveOnly(() => {
      this.#timer?.cancel();
    });
    return listen;
  }

  close(): Promise<void> {
    this.#timer?.cancel();
    return this.#tunnel.close();
  }
}
