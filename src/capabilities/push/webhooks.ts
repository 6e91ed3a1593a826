/**
 * The caller's side of push notifications: webhooks of local programs that remote agents call through svcd. Only the
 * agent with which a webhook was registered can call it, and only while the registration lasts. See docs/push.md.
 */
import type { JitteredBackoff } from '../../foundation/backoff.ts';
import { toHex } from '../../foundation/bytes.ts';
import { detach } from '../../foundation/detached.ts';
import {
  MAX_SHOWN_WEBHOOKS,
  NOTIFICATION_LIFE_MS,
  PUSH_BOX_RENEW_MS,
  WEBHOOK_NAME_BYTES,
} from '../../foundation/domain/push.ts';
import type { NetworkState } from '../../foundation/due-queue.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { Component } from '../../foundation/lifecycle.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import type { RandomParts } from '../../foundation/node-parts.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { every, type RepeatingTask } from '../../foundation/repeat.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NewNotification, WebhookRow, WebhookStore } from '../../foundation/store/webhooks.ts';
import { Tally } from '../../foundation/tally.ts';
import type { LinkPair, LinkStream, Links } from '../../network/links/types.ts';
import { drainAndDestroy } from '../../network/peers/stream-dispatcher.ts';
import { KeyedQueues } from './keyed-queues.ts';
import { mayQueue, NOTIFICATIONS_BURST, NOTIFICATIONS_PER_S, PUSH_CLEANUP_MS } from './queue-limits.ts';
import type { PostToWebhook, PushOrigin } from './types.ts';
import { localWebhook } from './webhook-address.ts';
import {
  isWebhookName,
  type NotificationResponse,
  readNotification,
  requestWebhookUrl,
  respondToNotification,
} from './wire.ts';

/** Backoff between requests to a webhook whose program does not respond. */
const POST_RETRY: JitteredBackoff = { firstMs: 1000, maxMs: 60_000, jitter: 0.2 };
/** Concurrent webhook requests in total, and per program, which may hang. */
const POSTS_AT_ONCE = 16;
const POSTS_AT_ONCE_PER_PROGRAM = 4;
/** Backoff between attempts to tell the remote side that this node is back. */
const RENEW_RETRY: JitteredBackoff = { firstMs: 2000, maxMs: 600_000, jitter: 0.2 };
const RENEWALS_AT_ONCE = 4;
/** Time limit for requesting a webhook URL from the remote side, in milliseconds. */
const URL_TIMEOUT_MS = 10_000;
/** Time limit for receiving a notification, in milliseconds. */
const RECEIVE_TIMEOUT_MS = 30_000;
/** Agent pairs and webhooks with state in memory. */
const MAX_TRACKED = 1024;
/** Concurrent links with notifications, per remote agent and in total. */
const LINKS_PER_AGENT = 8;
const MAX_LINKS = 64;

export interface WebhooksDependencies extends RandomParts {
  readonly store: WebhookStore;
  readonly links: Pick<Links, 'open' | 'accept'>;
  readonly post: PostToWebhook;
  readonly network?: NetworkState;
  readonly randomBytes: (length: number) => Uint8Array;
  /** True if the owner of a local agent denied a remote agent. */
  readonly isDenied: (localAid: Aid, remoteAid: Aid) => boolean;
}

/** The last request to a webhook. */
interface LastAttempt {
  readonly at: number;
  /** Why the notification was not delivered; null if it was. */
  readonly error: string | null;
}

/** A webhook as the API shows it. */
export interface WebhookInfo extends WebhookRow {
  readonly waiting: number;
  /** The last request since the start; null if there was none. */
  readonly lastTry: LastAttempt | null;
}

export class Webhooks implements Component {
  readonly #deps: WebhooksDependencies;
  readonly #posts: KeyedQueues;
  readonly #renewals: KeyedQueues;
  readonly #rate: RateLimiter;
  /** Links that deliver notifications, per remote agent. */
  readonly #open = new Tally<Aid>();
  readonly #lastAttempts = new LruCache<string, LastAttempt>({ maxEntries: MAX_TRACKED });
  readonly #stop = new AbortController();
  #cleanup: RepeatingTask | null = null;
  #renewing: RepeatingTask | null = null;

  /** Accepts links with the purpose `push`. */
  constructor(dependencies: WebhooksDependencies) {
    const { links, log } = dependencies;
    this.#deps = { ...dependencies, log: log.child('webhooks') };
    const { clock, random, network } = dependencies;
    this.#posts = new KeyedQueues(
      {
        name: 'webhook requests',
        retry: POST_RETRY,
        atOnce: { total: POSTS_AT_ONCE, perKey: POSTS_AT_ONCE_PER_PROGRAM },
      },
      { clock, log, random, work: (lane, signal) => this.#postNext(lane, signal) },
    );
    this.#renewals = new KeyedQueues(
      { name: 'renewals of webhook URLs', retry: RENEW_RETRY, atOnce: { total: RENEWALS_AT_ONCE, perKey: 1 } },
      { clock, log, network, random, work: (originId, signal) => this.#renew(originId, signal) },
    );
    this.#rate = new RateLimiter(
      { perSecond: NOTIFICATIONS_PER_S, burst: NOTIFICATIONS_BURST, maxKeys: MAX_TRACKED },
      dependencies,
    );
    links.accept(
      'push',
      (link) => detach(this.#serve(link)),
      (request) => this.#check(request),
    );
  }

  /** Resumes queued deliveries, and tells remote agents with queued notifications that this node is reachable again. */
  async start(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const onError = (error: unknown): void => log.warn({ error }, 'cannot process the webhooks');
    this.#cleanup = every(clock, { periodMs: PUSH_CLEANUP_MS, firstMs: 0, onError }, () =>
      store.deleteExpired(clock.now()),
    );
    this.#renewing = every(clock, { periodMs: PUSH_BOX_RENEW_MS, firstMs: 0, onError }, () => {
      for (const { id } of store.origins()) this.#renewals.wake(id);
    });
    for (const webhook of store.withPending()) this.#posts.wake(queueName(webhook));
    this.#posts.start();
    this.#renewals.start();
  }

  async stop(): Promise<void> {
    this.#cleanup?.stop();
    this.#renewing?.stop();
    this.#stop.abort();
    await Promise.all([this.#posts.stop(), this.#renewals.stop()]);
  }

  /**
   * Registers a webhook on this machine or in its network and returns the webhook URL that the remote agent's server
   * calls instead; null if the server can call the webhook itself.
   * @param purpose the task and configuration; null if not known
   * @throws SvcError `invalid_request` if the address is not allowed; the errors of requesting a webhook URL
   */
  async register(origin: PushOrigin, text: string, purpose: string | null, signal: AbortSignal) {
    const url = localWebhook(text);
    if (url === null) return null;
    const { store, clock, randomBytes } = this.#deps;
    const box = await this.#requestUrl(origin, signal);
    const fresh = toHex(randomBytes(WEBHOOK_NAME_BYTES));
    const name = store.register({ name: fresh, originId: origin.id, url: url.href, purpose }, clock.now());
    return { name, address: `${box}/${name}`, isNew: name === fresh };
  }

  /** The webhook that a webhook URL stands for; null if the URL does not belong to this local address. */
  findByUrl(originId: string, address: string): { readonly name: string; readonly url: string } | null {
    const name = /^http:\/\/127\.0\.0\.1:\d+\/[\w-]+\/([0-9a-f]+)$/.exec(address)?.[1] ?? '';
    const row = isWebhookName(name) ? this.#deps.store.get(name) : null;
    return row === null || row.originId !== originId ? null : row;
  }

  has(name: string): boolean {
    return this.#deps.store.get(name) !== null;
  }

  /**
   * Removes a webhook with its queued notifications.
   * @throws SvcError `not_found`
   */
  remove(name: string): void {
    if (this.#deps.store.delete(name)) return;
    throw new SvcError('not_found', { message: 'No such webhook.' });
  }

  list(): WebhookInfo[] {
    return this.#deps.store.list(MAX_SHOWN_WEBHOOKS).map(({ webhook, waiting }) => ({
      ...webhook,
      waiting,
      lastTry: this.#lastAttempts.peek(webhook.name) ?? null,
    }));
  }

  /** Rejects links of strangers early: only agents with a webhook registered here may deliver. */
  #check({ called, caller }: LinkPair): void {
    const { store, isDenied } = this.#deps;
    if (isDenied(called, caller) || !store.hasAny(called, caller)) throw new SvcError('access_denied');
    if (this.#open.of(caller) >= LINKS_PER_AGENT || this.#open.total >= MAX_LINKS) throw new SvcError('rate_limited');
  }

  async #serve(link: LinkStream): Promise<void> {
    link.on('error', () => {});
    if (link.destroyed) return;
    this.#open.add(link.caller);
    link.once('close', () => this.#open.add(link.caller, -1));
    using limit = awakeTimeout(this.#deps.clock, RECEIVE_TIMEOUT_MS, this.#stop.signal);
    limit.signal.addEventListener('abort', () => link.destroy(), { once: true });
    try {
      const notification = await readNotification(link, limit.signal);
      respondToNotification(link, notification === null ? 'refused' : this.#receive(link, notification));
      drainAndDestroy(link, this.#deps.clock);
    } catch (error) {
      this.#deps.log.debug({ caller: link.caller, error }, 'a link with a notification failed');
      link.destroy();
    }
  }

  #receive({ called, caller }: LinkStream, notification: NewNotification): NotificationResponse {
    // protocol-push.md, step 5
    const { store, clock, isDenied } = this.#deps;
    const row = store.get(notification.webhook);
    if (row === null || row.localAid !== called || row.remoteAid !== caller || isDenied(called, caller)) return 'gone';
    if (store.isKnown(row.name, notification.id)) return 'kept';
    if (!this.#rate.take(`${called} ${caller}`)) return 'limited';
    if (!this.#hasRoom(row, notification.body.length)) return 'full';
    store.addNotification(notification, clock.now());
    this.#posts.wake(queueName(row));
    return 'kept';
  }

  #hasRoom({ name, originId }: WebhookRow, bytes: number): boolean {
    const { store } = this.#deps;
    const [webhook, peer, all] = [store.waitingFor(name), store.waitingForOrigin(originId), store.waitingTotal()];
    return mayQueue({ webhook, peer, all }, bytes);
  }

  /**
   * Posts the next notification of a webhook. Returns false if none is queued. If it throws, the notification is posted
   * again.
   */
  async #postNext(lane: string, signal: AbortSignal): Promise<boolean> {
    const { store, post, clock, isDenied } = this.#deps;
    const [, name = ''] = lane.split(' ');
    const row = store.get(name);
    const next = row === null ? null : store.next(name);
    if (row === null || next === null) return false;
    const { localAid, remoteAid } = row;
    if (isDenied(localAid, remoteAid)) {
      store.deletePair(localAid, remoteAid);
      return false;
    }
    if (next.at + NOTIFICATION_LIFE_MS <= clock.now()) {
      store.settle(next.seq, false);
      return true;
    }
    const headers = [...next.headers, ...['Svc-Caller-Aid', remoteAid, 'Svc-Local-Aid', localAid]];
    headers.push('Svc-Notification-Id', next.id);
    try {
      const status = await post({ url: new URL(row.url), headers, body: next.body, signal });
      this.#onResponse(name, next.seq, status);
    } catch (error) {
      const { message } = error instanceof SvcError ? error : new SvcError('internal');
      if (!signal.aborted) this.#recordAttempt(name, message);
      throw error;
    }
    return true;
  }

  /** @throws SvcError `connect_failed` if the notification must be posted again */
  #onResponse(name: string, seq: number, status: number): void {
    const { store } = this.#deps;
    const isTaken = status >= 200 && status < 300;
    const message = `The webhook answered with status ${status}.`;
    if (!isTaken && !isRefusal(status)) throw new SvcError('connect_failed', { message });
    this.#recordAttempt(name, isTaken ? null : message);
    store.settle(seq, isTaken);
  }

  #recordAttempt(name: string, error: string | null): void {
    this.#lastAttempts.set(name, { at: this.#deps.clock.now(), error });
  }

  async #renew(originId: string, signal: AbortSignal): Promise<boolean> {
    const origin = this.#deps.store.origins().find(({ id }) => id === originId);
    if (origin !== undefined) await this.#requestUrl(origin, signal);
    return false;
  }

  /** Requests a webhook URL from the remote side. */
  async #requestUrl({ localAid, remoteAid, accessToken }: PushOrigin, signal: AbortSignal): Promise<string> {
    const { links, clock } = this.#deps;
    const either = AbortSignal.any([signal, this.#stop.signal]);
    const link = await links.open(localAid, remoteAid, 'push-box', { accessToken, signal: either });
    using limit = awakeTimeout(clock, URL_TIMEOUT_MS, either);
    try {
      const answer = await requestWebhookUrl(link, limit.signal);
      drainAndDestroy(link, clock);
      if (answer === 'full')
        throw new SvcError('quota_exceeded', { message: 'The remote node rejects further webhooks. Retry later.' });
      if (answer === 'elsewhere')
        throw new SvcError('inbound_unreachable', {
          message:
            'The server of this agent runs on a different machine than its svcd and cannot reach webhooks of remote agents.',
        });
      if (answer === null) throw new SvcError('protocol_error');
      return answer.url;
    } catch (error) {
      link.destroy();
      throw error;
    }
  }
}

/** The queue name starts with the webhook's program, which is the group. */
function queueName({ url, name }: Pick<WebhookRow, 'url' | 'name'>): string {
  return `${new URL(url).host} ${name}`;
}

/** The program rejected the notification and would reject it again. Go on to the next notification. */
function isRefusal(status: number): boolean {
  return status >= 400 && status < 500 && status !== 408 && status !== 425 && status !== 429;
}
