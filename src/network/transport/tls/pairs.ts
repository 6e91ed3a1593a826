/**
 * Joins the ends of lanes at a helper (docs/protocol-tls.md, steps 9 to 11): each message of one WebSocket goes to the
 * other one with the same token. The messages are sealed end to end.
 */
import type { RawData, WebSocket } from 'ws';
import { freeMemory } from '../../../foundation/bytes.ts';
import type { Clock, Timer } from '../../../foundation/clock.ts';

/** An end without another one, and a pair without messages, is closed after this time, milliseconds. */
export const PAIR_WAIT_MS = 10_000;
export const PAIR_IDLE_MS = 30_000;
/** A pair that the budgets do not permit to send for this time is closed, milliseconds. */
export const PAIR_UNPAID_MS = 5_000;
/** Interval of attempts to pay, milliseconds. */
const UNPAID_LOOK_MS = 20;
/** Bytes that are paid at one time: a small budget never has a whole message. */
const PAID_BYTES = 4 * 1024;
/** Minimum charge for a message or datagram, bytes: shorter ones cost this node as much. */
export const MIN_CHARGED_BYTES = 256;
/** Bytes of one direction that may wait in this process before its sender must wait. */
const MAX_WAITING_BYTES: number = 256 * 1024;

interface PairEndOptions {
  readonly webSocket: WebSocket;
  /** Spends bytes of the sender's budgets. */
  readonly spend: (bytes: number) => boolean;
  /** Called once when it is closed. */
  readonly onEnd: () => void;
}

class PairEnd {
  readonly #options: PairEndOptions;
  readonly #clock: Clock;
  #other: PairEnd | null = null;
  /** Messages that are not paid, with the paid bytes of the first one. */
  readonly #unpaid: Buffer[] = [];
  #paid = 0;
  #unpaidSince = 0;
  #payment: Timer | null = null;
  #check: Timer;
  #isUsed = false;
  #isEnded = false;

  constructor(options: PairEndOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#check = clock.after(PAIR_WAIT_MS, () => this.end());
    const { webSocket } = options;
    webSocket.pause();
    webSocket.on('message', (data, isBinary) => this.#onMessage(data, isBinary));
    webSocket.on('close', () => this.#onClose());
  }

  join(other: PairEnd): void {
    this.#other = other;
    this.#watchUse();
    this.#options.webSocket.resume();
    this.#forward(other);
  }

  /** Closes both ends. Messages that are not sent are lost. */
  end(): void {
    if (this.#isEnded) return;
    this.#release();
    this.#options.webSocket.terminate();
    this.#other?.end();
  }

  #release(): void {
    this.#isEnded = true;
    this.#check.cancel();
    this.#payment?.cancel();
    this.#options.onEnd();
  }

  #watchUse(): void {
    this.#check.cancel();
    this.#isUsed = false;
    this.#check = this.#clock.after(PAIR_IDLE_MS, () => {
      if (this.#isUsed) this.#watchUse();
      else this.end();
    });
  }

  #onMessage(data: RawData, isBinary: boolean): void {
    if (this.#isEnded) return;
    if (!isBinary || !Buffer.isBuffer(data)) return this.end();
    this.#isUsed = true;
    this.#unpaid.push(data);
    if (this.#other !== null && this.#payment === null) this.#forward(this.#other);
  }

  /** The peer has closed its WebSocket. Its earlier messages still arrive. */
  #onClose(): void {
    if (this.#isEnded || (this.#unpaid.length > 0 && this.#other !== null)) return;
    this.#release();
    this.#other?.closeAfterSending();
  }

  closeAfterSending(): void {
    if (!this.#isEnded) this.#options.webSocket.close();
  }

  #forward(other: PairEnd): void {
    const { webSocket, spend } = this.#options;
    const to = other.#options.webSocket;
    for (let message = this.#unpaid[0]; message !== undefined; message = this.#unpaid[0]) {
      const price = Math.max(message.length, MIN_CHARGED_BYTES);
      while (this.#paid < price) {
        const part = Math.min(PAID_BYTES, price - this.#paid);
        if (!spend(part)) return this.#waitForBudget(other);
        this.#paid += part;
        this.#unpaidSince = 0;
      }
      this.#paid = 0;
      this.#unpaid.shift();
      const sent = message;
      to.send(sent, () => this.#onSent(sent, to));
    }
    if (webSocket.readyState === webSocket.CLOSED) return this.#onClose();
    if (to.bufferedAmount > MAX_WAITING_BYTES) webSocket.pause();
    else if (webSocket.isPaused) webSocket.resume();
  }

  #onSent(message: Buffer, to: WebSocket): void {
    freeMemory(message);
    const { webSocket } = this.#options;
    const hasRoom = to.bufferedAmount <= MAX_WAITING_BYTES / 2;
    if (hasRoom && webSocket.isPaused && this.#payment === null && !this.#isEnded) webSocket.resume();
  }

  #waitForBudget(other: PairEnd): void {
    const now = this.#clock.monotonic();
    if (this.#unpaidSince === 0) this.#unpaidSince = now;
    if (now - this.#unpaidSince >= PAIR_UNPAID_MS) return this.end();
    this.#options.webSocket.pause();
    this.#payment = this.#clock.after(UNPAID_LOOK_MS, () => {
      this.#payment = null;
      this.#forward(other);
    });
  }
}

export class Pairs {
  readonly #clock: Clock;
  /** Ends that wait for another one, by token. */
  readonly #waiting = new Map<string, PairEnd>();
  readonly #ends = new Set<PairEnd>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Joins an end with the waiting end, or lets it wait. @returns a function that closes it */
  add(token: Uint8Array, options: PairEndOptions): () => void {
    const name = Buffer.from(token).toString('latin1');
    const onEnd = (): void => {
      this.#ends.delete(end);
      if (this.#waiting.get(name) === end) this.#waiting.delete(name);
      options.onEnd();
    };
    const end = new PairEnd({ ...options, onEnd }, this.#clock);
    this.#ends.add(end);
    const other = this.#waiting.get(name);
    if (other === undefined) this.#waiting.set(name, end);
    else {
      this.#waiting.delete(name);
      other.join(end);
      end.join(other);
    }
    return () => end.end();
  }

  stop(): void {
    for (const end of [...this.#ends]) end.end();
  }
}
