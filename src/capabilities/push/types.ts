/** What webhooks and mailboxes need from others. */
import type { Aid } from '../../foundation/identity/aid.ts';
import type { NewNotification } from '../../foundation/store/webhooks.ts';

/** A local address of a remote agent, as far as webhooks that are registered there look at it. */
export interface PushOrigin {
  readonly id: string;
  readonly localAid: Aid;
  readonly remoteAid: Aid;
  /** What the remote agent asks for. */
  readonly accessToken?: string | undefined;
}

/** What a webhook is to get. */
export interface WebhookPost {
  readonly url: URL;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

/**
 * Posts to a webhook; resolves with its status, whatever that is. Redirects are not followed.
 * @throws SvcError `connect_failed`, `timeout`, `invalid_request` where the address may not be posted to
 */
export type PostToWebhook = (post: WebhookPost) => Promise<number>;

/** What becomes of a notification that a server leaves in a mailbox. */
export type Left = 'kept' | 'unknown' | 'full' | 'limited';

/** Takes a notification that a server posted to a mailbox; `kept` once it is durable. */
export type LeaveNotification = (
  token: string,
  notification: Pick<NewNotification, 'webhook' | 'headers' | 'body'>,
) => Left;

/** What listens for servers that leave notifications. */
export interface BoxListener {
  readonly port: number;
  close(): Promise<void>;
}

/** Begins to listen on a port of 127.0.0.1; 0: the system chooses one. @throws SvcError `port_in_use` */
export type ServeBoxes = (port: number, leave: LeaveNotification) => Promise<BoxListener>;
