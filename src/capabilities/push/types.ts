/** Interfaces between push notifications and other components. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { NewNotification } from '../../foundation/store/webhooks.ts';

/** A local address of a remote agent, with the fields that its webhooks need. */
export interface PushOrigin {
  readonly id: string;
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  /** The access token that the remote agent requires. */
  readonly accessToken?: string | undefined;
}

/** A request to a webhook. */
export interface WebhookPost {
  readonly url: URL;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/**
 * Posts to a webhook and resolves with the status of any response. Redirects are not followed.
 * @throws SvcError `connect_failed`, `timeout`, `invalid_request` if the address is not allowed
 */
export type PostToWebhook = (post: WebhookPost) => Promise<number>;

/** Result of posting a notification to a webhook URL. */
export type StoreResult = 'kept' | 'unknown' | 'full' | 'limited';

/** Stores a notification that a server posted to a webhook URL. Returns `kept` when it is durable. */
export type StoreNotification = (
  token: string,
  notification: Pick<NewNotification, 'webhook' | 'headers' | 'body'>,
) => StoreResult;

/** The HTTP listener for webhook URLs. */
export interface WebhookUrlListener {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Listens on a port of 127.0.0.1; 0 lets the system choose one.
 * @throws SvcError `port_in_use`
 */
export type ServeWebhookUrls = (port: number, leave: StoreNotification) => Promise<WebhookUrlListener>;
