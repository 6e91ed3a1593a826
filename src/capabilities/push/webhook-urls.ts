/**
 * The called side of push notifications. Each remote agent that asks gets a webhook URL on this machine, to which the
 * server of a local agent posts its notifications. They are stored until the remote side accepts them. See
 * docs/push.md.
 */
import type { JitteredBackoff } from '../../foundation/backoff.ts';
import { toHex } from '../../foundation/bytes.ts';
import { SingleFlight } from '../../foundation/concurrency.ts';
import { detach } from '../../foundation/detached.ts';
import type { AccessDecision } from '../../foundation/domain/access.ts';
import {
  MAX_PUSH_BOXES,
  MAX_PUSH_BOXES_OF_STRANGERS,
  MAX_PUSH_BOXES_PER_NETWORK,
  MAX_PUSH_BOXES_PER_SOURCE,
  NOTIFICATION_ID_BYTES,
  NOTIFICATION_LIFE_MS,
  PUSH_BOX_TOKEN_BYTES,
} from '../../foundation/domain/push.ts';
import type { NetworkState } from '../../foundation/due-queue.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { StoredSecrets } from '../../foundation/keys/stored-secrets.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import type { RandomParts } from '../../foundation/node-parts.ts';
import { Quota, type QuotaHolder, type QuotaLimits, sourceGroupOf } from '../../foundation/quota.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { MetaStore } from '../../foundation/store/meta.ts';
import type { WaitingSum } from '../../foundation/store/notification-row.ts';
import { sha256Hex } from '../../foundation/store/store.ts';
import type { WebhookUrlRow, WebhookUrlStore } from '../../foundation/store/webhook-urls.ts';
import { pairHolder } from '../../network/links/holder.ts';
import type { LinkStream, Links } from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { Refusal, STATUS } from '../../network/peers/wire.ts';
import { KeyedQueues } from './keyed-queues.ts';
import {
  mayQueue,
  mayQueueForStranger,
  NOTIFICATIONS_BURST,
  NOTIFICATIONS_PER_S,
  PUSH_CLEANUP_MS,
  PUSH_RESPONSE_MS,
} from './queue-limits.ts';
import type { ServeWebhookUrls, StoreNotification, StoreResult, WebhookUrlListener } from './types.ts';
import {
  isWebhookName,
  type NotificationResponse,
  offerNotification,
  sendWebhookUrl,
  type WebhookUrlResponse,
} from './wire.ts';

/** Key of the stored port for webhook URLs. */
const PORT_KEY = 'push_port';
/** Backoff between delivery attempts. */
const RETRY: JitteredBackoff = { firstMs: 1000, maxMs: 300_000, jitter: 0.2 };
/** Concurrent deliveries. Some callers may be unreachable. */
const DELIVERY_LIMITS: QuotaLimits = { perKey: 2, perSource: 2, perNetwork: 3, total: 8, reserved: 4 };
const URL_LIMITS: QuotaLimits = {
  perSource: MAX_PUSH_BOXES_PER_SOURCE,
  perNetwork: MAX_PUSH_BOXES_PER_NETWORK,
  total: MAX_PUSH_BOXES,
  reserved: MAX_PUSH_BOXES - MAX_PUSH_BOXES_OF_STRANGERS,
};
/** Time limit for reaching the caller's node, in milliseconds. */
const OPEN_TIMEOUT_MS = 10_000;
/** Interval for retrying to listen on a port that is in use, in milliseconds. */
const LISTEN_RETRY_MS = 15_000;

export interface WebhookUrlsDependencies extends RandomParts {
  readonly store: WebhookUrlStore;
  readonly links: Pick<Links, 'open' | 'accept'>;
  readonly memory: Pick<MetaStore, 'get' | 'set'>;
  readonly serve: ServeWebhookUrls;
  readonly network?: NetworkState;
  readonly secrets: StoredSecrets;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly newId: () => string;
  /** The decision of a local agent's access list on a caller. */
  readonly decide: (called: Aid, caller: Aid) => AccessDecision;
  /** True if the owner of a local agent allowed a caller by name. */
  readonly isNamed: (called: Aid, caller: Aid) => boolean;
  /** Whether the service of a local agent runs on this machine; null if it has no service. */
  readonly isServedHere: (called: Aid) => boolean | null;
}

/** A webhook URL as the API shows it, without the secret token. */
export type WebhookUrlInfo = Omit<WebhookUrlRow, 'tokenHash' | 'node' | 'source'> & { readonly waiting: number };

export class WebhookUrls implements Component {
  readonly #deps: WebhookUrlsDependencies;
  readonly #queues: KeyedQueues;
  readonly #rate: RateLimiter;
  readonly #listening = new SingleFlight<WebhookUrlListener, ''>();
  readonly #stop = new AbortController();
  #listener: WebhookUrlListener | null = null;
  #cleanup: RepeatingTask | null = null;
  #listenRetry: RepeatingTask | null = null;

  /** Accepts links with the purpose `push-box`. */
  constructor(dependencies: WebhookUrlsDependencies) {
    this.#deps = { ...dependencies, log: dependencies.log.child('webhook-urls') };
    const { links, isServedHere } = dependencies;
    this.#queues = new KeyedQueues(
      { name: 'notifications', retry: RETRY, atOnce: DELIVERY_LIMITS },
      {
        ...this.#deps,
        holderOf: (lane) => this.#queueHolder(lane),
        work: (lane, signal) => this.#deliverNext(lane, signal),
      },
    );
    this.#rate = new RateLimiter(
      { perSecond: NOTIFICATIONS_PER_S, burst: NOTIFICATIONS_BURST, maxKeys: MAX_PUSH_BOXES },
      dependencies,
    );
    links.accept(
      'push-box',
      (link) => detach(this.#serve(link)),
      ({ called }) => {
        if (isServedHere(called) === null) throw new SvcError('no_inbound');
      },
    );
  }

  /** Listens on the stored port if webhook URLs exist, and resumes the delivery of queued notifications. */
  async start(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const onError = (error: unknown): void => log.warn({ error }, 'cannot process the webhook URLs of remote agents');
    this.#cleanup = every(clock, { periodMs: PUSH_CLEANUP_MS, onError }, () => store.deleteExpired(clock.now()));
    store.deleteExpired(clock.now());
    const portTaken = (error: unknown): void =>
      log.warn({ error }, 'the port for webhook URLs of remote agents is in use');
    const look = { periodMs: LISTEN_RETRY_MS, onError: portTaken };
    // Try once before another program can use the port, then until it is free.
    await this.#ensureListening().catch(portTaken);
    this.#listenRetry = every(clock, look, () => this.#ensureListening());
    for (const { box, webhook } of store.withPending(null)) this.#queues.wake(queueName(box, webhook));
    this.#queues.start();
  }

  async stop(): Promise<void> {
    this.#cleanup?.stop();
    this.#listenRetry?.stop();
    this.#stop.abort();
    await this.#listenRetry?.idle();
    await Promise.all([this.#queues.stop(), this.#listener?.close()]);
  }

  /** The port on 127.0.0.1 for webhook URLs; null if none is needed. */
  get port(): number | null {
    return this.#listener?.port ?? null;
  }

  list(): WebhookUrlInfo[] {
    return this.#deps.store
      .list()
      .map(({ box: { tokenHash: _hash, node: _node, source: _source, ...box }, waiting }) => ({ ...box, waiting }));
  }

  /**
   * Removes a webhook URL with its queued notifications.
   * @throws SvcError `not_found`
   */
  remove(id: string): void {
    if (this.#deps.store.delete(id)) return;
    throw new SvcError('not_found', { message: 'No such webhook URL.' });
  }

  async #ensureListening(): Promise<void> {
    if (this.#listener === null && this.#deps.store.list().length > 0) await this.#listen();
  }

  /**
   * Listens on the stored port, or on a new port that is then stored.
   * @throws SvcError `port_in_use`
   */
  async #listen(): Promise<WebhookUrlListener> {
    if (this.#listener !== null) return this.#listener;
    return await this.#listening.run('', async () => {
      const { memory, serve } = this.#deps;
      const before = memory.get(PORT_KEY);
      const listener = await serve(typeof before === 'number' ? before : 0, this.#store);
      if (listener.port !== before) memory.set(PORT_KEY, listener.port);
      if (this.#stop.signal.aborted) await listener.close();
      this.#listener = listener;
      return listener;
    });
  }

  async #serve(link: LinkStream): Promise<void> {
    link.on('error', () => {});
    try {
      sendWebhookUrl(link, await this.#answerFor(link));
      drainAndDestroy(link, this.#deps.clock);
    } catch (error) {
      this.#deps.log.warn({ caller: link.caller, error }, 'cannot create a webhook URL for a remote agent');
      link.destroy();
    }
  }

  async #answerFor(link: LinkStream): Promise<WebhookUrlResponse> {
    // protocol-push.md, step 2
    const { isServedHere, store } = this.#deps;
    if (isServedHere(link.called) !== true) return 'elsewhere';
    const { port } = await this.#listen();
    const box = this.#open(link);
    if (box === null) return 'full';
    // The caller is reachable now.
    for (const { webhook } of store.withPending(box.id)) this.#queues.retryNow(queueName(box.id, webhook));
    return { url: `http://127.0.0.1:${port}/${this.#tokenOf(box.id)}` };
  }

  /** The webhook URL of a caller; null if the quota is used up. */
  #open(link: LinkStream): WebhookUrlRow | null {
    const { store, clock, isNamed, newId } = this.#deps;
    const { called, caller } = link;
    const existing = store.find(called, caller);
    if (existing !== null) {
      store.renew(existing.id, sha256Hex(this.#tokenOf(existing.id)), clock.now());
      return existing;
    }
    const holder = pairHolder(link, isNamed(called, caller));
    if (!this.#makeRoom(holder)) return null;
    const id = newId();
    const tokenHash = sha256Hex(this.#tokenOf(id));
    store.open({ id, called, caller, tokenHash, openedAt: clock.now(), node: holder.node, source: holder.source });
    return store.find(called, caller);
  }

  /** The secret of a URL. Its caller gets the same each time, although only the hash is stored. */
  #tokenOf(id: string): string {
    return Buffer.from(this.#deps.secrets.derive(`webhook url ${id}`, PUSH_BOX_TOKEN_BYTES)).toString('base64url');
  }

  /** True if there is room for one more webhook URL. May remove the webhook URL of a stranger. */
  #makeRoom(holder: QuotaHolder): boolean {
    const { store } = this.#deps;
    const quota = new Quota(URL_LIMITS);
    const boxes = store.list().map(({ box }) => box);
    // The webhook URL that was not renewed for longest is evicted first.
    for (const box of boxes.sort((one, other) => one.renewedAt - other.renewedAt))
      quota.take(this.#holderOf(box), { onEvict: () => void store.delete(box.id) });
    return quota.take(holder) !== null;
  }

  #holderOf({ id, called, caller, node, source }: WebhookUrlRow): QuotaHolder {
    return { key: id, node, source, named: this.#deps.isNamed(called, caller) };
  }

  #queueHolder(lane: string): QuotaHolder {
    const [id = ''] = lane.split(' ');
    const box = this.#deps.store.get(id);
    return box === null ? { node: id, source: null, named: true } : this.#holderOf(box);
  }

  /** Stores a notification of a local server for a remote webhook. */
  readonly #store: StoreNotification = (token, { webhook, headers, body }): StoreResult => {
    const { store, clock, randomBytes } = this.#deps;
    const box = isWebhookName(webhook) ? store.byToken(token) : null;
    if (box === null || !this.#isStillAllowed(box)) return 'unknown';
    if (!this.#rate.take(box.id)) return 'limited';
    if (!this.#hasRoom(box, webhook, body.length)) return 'full';
    const id = toHex(randomBytes(NOTIFICATION_ID_BYTES));
    store.leave(box.id, { webhook, id, headers, body }, clock.now());
    this.#queues.wake(queueName(box.id, webhook));
    return 'kept';
  };

  /** Returns false and removes the webhook URL if the owner of the agent has since denied the caller. */
  #isStillAllowed({ id, called, caller }: WebhookUrlRow): boolean {
    const decision = this.#deps.decide(called, caller);
    if (decision === 'allow' || decision === 'secret') return true;
    this.#deps.store.delete(id);
    return false;
  }

  #hasRoom(box: WebhookUrlRow, webhook: string, bytes: number): boolean {
    const { store } = this.#deps;
    const [own, peer, all] = [store.waitingFor(box.id, webhook), store.waitingIn(box.id), store.waitingTotal()];
    return mayQueue({ webhook: own, peer, all }, bytes) && this.#strangersHaveQuota(box, bytes);
  }

  #strangersHaveQuota(box: WebhookUrlRow, bytes: number): boolean {
    const holder = this.#holderOf(box);
    if (holder.named || holder.source === null) return true;
    const own = sourceGroupOf(holder.source);
    const strangers = this.#deps.store
      .waitingByBox()
      .map(({ box: other, sum }) => ({ ...this.#holderOf(other), sum }))
      .filter(({ named }) => !named)
      .map(({ source, sum }) => ({ group: source === null ? null : sourceGroupOf(source), sum }));
    const ofNetwork = strangers.filter(({ group }) => group?.network === own.network);
    const ofSource = ofNetwork.filter(({ group }) => group?.source === own.source);
    const sums = { source: sumOf(ofSource), network: sumOf(ofNetwork), strangers: sumOf(strangers) };
    return mayQueueForStranger(sums, bytes);
  }

  /**
   * Delivers the next notification for a webhook. Returns false if none is queued. If it throws, the delivery is
   * retried.
   */
  async #deliverNext(lane: string, signal: AbortSignal): Promise<boolean> {
    // protocol-push.md, step 6
    const { store, clock, log } = this.#deps;
    const [id = '', webhook = ''] = lane.split(' ');
    const box = store.get(id);
    const next = box === null ? null : store.next(id, webhook);
    if (box === null || next === null || !this.#isStillAllowed(box)) return false;
    if (next.at + NOTIFICATION_LIFE_MS <= clock.now()) {
      store.deleteDelivered(next.seq);
      return true;
    }
    const answer = await this.#offer(box, next, signal);
    if (answer === 'gone') store.drop(id, webhook);
    else if (answer === 'kept' || answer === 'refused') store.deleteDelivered(next.seq);
    else throw new SvcError('rate_limited');
    if (answer !== 'kept') log.debug({ caller: box.caller, answer }, 'the remote node did not accept a notification');
    return true;
  }

  async #offer({ called, caller }: WebhookUrlRow, next: Parameters<typeof offerNotification>[1], signal: AbortSignal) {
    // protocol-push.md, step 4
    const { links, clock } = this.#deps;
    let link: LinkStream;
    try {
      link = await links.open(called, caller, 'push', { signal, timeoutMs: OPEN_TIMEOUT_MS });
    } catch (error) {
      if (isDenied(error)) return 'gone' satisfies NotificationResponse;
      throw error;
    }
    using limit = awakeTimeout(clock, PUSH_RESPONSE_MS, signal);
    try {
      const answer = await offerNotification(link, next, limit.signal);
      drainAndDestroy(link, clock);
      if (answer === null) throw new SvcError('protocol_error');
      return answer;
    } catch (error) {
      link.destroy();
      throw error;
    }
  }
}

function sumOf(holders: readonly { readonly sum: WaitingSum }[]): WaitingSum {
  return holders.reduce((total, { sum }) => ({ count: total.count + sum.count, bytes: total.bytes + sum.bytes }), {
    count: 0,
    bytes: 0,
  });
}

function queueName(box: string, webhook: string): string {
  return `${box} ${webhook}`;
}

/** True if the remote side has no webhook of this agent or has denied it. A rejected proof means neither. */
function isDenied(error: unknown): boolean {
  const isBadProof = error instanceof Refusal && error.refusal === STATUS.badProof;
  return error instanceof SvcError && error.code === 'access_denied' && !isBadProof;
}
