/**
 * Messages on links with the purposes `push-box` and `push`: a caller requests a webhook URL at the called agent's
 * node, and the called agent delivers notifications. Format: docs/protocol-push.md.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { bytesUpTo, CborMap, fromBytes, hex, list, text, toBytes, where } from '../../foundation/cbor-map.ts';
import {
  MAX_NOTIFICATION_BYTES,
  MAX_NOTIFICATION_HEADER_CHARS,
  MAX_NOTIFICATION_HEADERS,
  NOTIFICATION_ID_BYTES,
  WEBHOOK_NAME_BYTES,
} from '../../foundation/domain/push.ts';
import type { NewNotification } from '../../foundation/store/webhooks.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { BinaryReader, LENGTH_BYTES, readExactly, readFrame, u16, u32 } from '../../network/peers/wire.ts';

/** Bytes to read at a time, less than a stream buffers. */
const PART_BYTES = 16 * 1024;
/** Longest message with a notification, in bytes: body, headers and a few more fields. */
const MAX_MESSAGE_BYTES: number = MAX_NOTIFICATION_BYTES + 4 * MAX_NOTIFICATION_HEADER_CHARS + 1024;
/** Longest webhook URL, in bytes. */
const MAX_WEBHOOK_URL_BYTES = 256;
/** Responses to a request for a webhook URL. After `open`, the URL follows. */
const WEBHOOK_URL_RESPONSES = ['open', 'full', 'elsewhere'] as const;
/** Responses of the caller's side to a notification. */
const NOTIFICATION_RESPONSES = ['kept', 'gone', 'full', 'refused', 'limited'] as const;

/**
 * `full`: no room for another webhook URL. `elsewhere`: the server of the agent runs on a different machine than its
 * daemon.
 */
export type WebhookUrlResponse = { readonly url: string } | Exclude<(typeof WEBHOOK_URL_RESPONSES)[number], 'open'>;
/** `gone`: no such webhook. `full`, `limited`: try later. `refused`: never try again. */
export type NotificationResponse = (typeof NOTIFICATION_RESPONSES)[number];

/**
 * Headers that control how a request is parsed, that svcd sets itself, or that have effects beyond the notification.
 * The pattern also covers separators other than `-`, because CGI-like servers treat them alike.
 */
const FORBIDDEN_HEADER =
  /^(?:accept.*|connection|content-length|cookie2?|expect|forwarded|host|keep-alive|origin|proxy(?:-.*)?|referer|sec-.*|svc-.*|te|trailer|transfer-encoding|upgrade.*|user-agent|via|x-forwarded-.*|x-http-method.*|x-method-override|x-real-ip)$/;

/** True if a header of a notification may reach a webhook. */
export function isAllowedHeader(name: string): boolean {
  return !FORBIDDEN_HEADER.test(name.toLowerCase().replace(/[^a-z0-9]/g, '-'));
}

/** True for a valid webhook name. */
export function isWebhookName(text: string): boolean {
  return text.length === 2 * WEBHOOK_NAME_BYTES && /^[0-9a-f]+$/.test(text);
}

/**
 * Requests a webhook URL. The link authenticates both agents. Rejects as `readFrame`.
 * @returns null if the response is invalid
 */
export async function requestWebhookUrl(link: LinkStream, signal: AbortSignal): Promise<WebhookUrlResponse | null> {
  // protocol-push.md, steps 1 and 2
  link.end();
  const [number = 255] = await readExactly(link, 1, signal);
  const answer = WEBHOOK_URL_RESPONSES[number];
  if (answer === undefined) return null;
  if (answer !== 'open') return answer;
  const url = Buffer.from(await readFrame(link, MAX_WEBHOOK_URL_BYTES, signal)).toString('latin1');
  return /^http:\/\/127\.0\.0\.1:\d{1,5}\/[A-Za-z0-9_-]{1,128}$/.test(url) ? { url } : null;
}

export function sendWebhookUrl(link: LinkStream, answer: WebhookUrlResponse): void {
  if (typeof answer === 'string') return void link.end(Uint8Array.of(WEBHOOK_URL_RESPONSES.indexOf(answer)));
  const url = Buffer.from(answer.url, 'latin1');
  link.end(Buffer.concat([Uint8Array.of(WEBHOOK_URL_RESPONSES.indexOf('open')), u16(url.length), url]));
}

const NOTIFICATION = new CborMap(
  {
    webhook: ['w', text(isWebhookName)],
    id: ['i', hex(NOTIFICATION_ID_BYTES)],
    headers: [
      'h',
      where(
        list(
          text(() => true),
          2 * MAX_NOTIFICATION_HEADERS,
        ),
        isHeaderList,
      ),
    ],
    body: ['b', bytesUpTo(MAX_NOTIFICATION_BYTES)],
  },
  { version: 1 },
);

export function encodeNotification(notification: NewNotification): Uint8Array {
  return toBytes(NOTIFICATION, notification);
}

/** Returns null if the message is invalid. */
export function decodeNotification(bytes: Uint8Array): NewNotification | null {
  return fromBytes(NOTIFICATION, bytes, MAX_MESSAGE_BYTES);
}

/** True for alternating names and values that are valid in HTTP and pass `isKeptHeader`. */
export function isHeaderList(list: unknown): list is readonly string[] {
  if (!Array.isArray(list) || list.length % 2 !== 0 || list.length > 2 * MAX_NOTIFICATION_HEADERS) return false;
  const texts: readonly unknown[] = list;
  let chars = 0;
  for (const [index, text] of texts.entries()) {
    if (typeof text !== 'string') return false;
    chars += text.length;
    if (chars > MAX_NOTIFICATION_HEADER_CHARS) return false;
    try {
      if (index % 2 === 0) {
        validateHeaderName(text);
        if (!isAllowedHeader(text)) return false;
      } else validateHeaderValue('x', text);
    } catch {
      return false;
    }
  }
  return true;
}

/**
 * Delivers a notification. Rejects as `readExactly`.
 * @returns null if the response is invalid
 */
export async function offerNotification(
  link: LinkStream,
  notification: NewNotification,
  signal: AbortSignal,
): Promise<NotificationResponse | null> {
  const bytes = encodeNotification(notification);
  link.write(u32(bytes.length));
  link.end(bytes);
  const [number = 255] = await readExactly(link, 1, signal);
  return NOTIFICATION_RESPONSES[number] ?? null;
}

/** Reads a notification; null if it is invalid. Rejects as `readExactly`. */
export async function readNotification(link: LinkStream, signal: AbortSignal): Promise<NewNotification | null> {
  const length = new BinaryReader(await readExactly(link, LENGTH_BYTES, signal)).u32();
  if (length > MAX_MESSAGE_BYTES) return null;
  return decodeNotification(await readWhole(link, length, signal));
}

/** Like `readExactly`, for more bytes than the stream buffers. */
async function readWhole(link: LinkStream, length: number, signal: AbortSignal): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (let left = length; left > 0; ) {
    const part = await readExactly(link, Math.min(left, PART_BYTES), signal);
    parts.push(part);
    left -= part.length;
  }
  return Buffer.concat(parts);
}

export function respondToNotification(link: LinkStream, answer: NotificationResponse): void {
  link.end(Uint8Array.of(NOTIFICATION_RESPONSES.indexOf(answer)));
}
