/**
 * What is said on links of the purposes `push-box` and `push`: a caller asks for the address at which a server of the
 * called agent can reach its webhooks, and the called agent hands notifications over. Format: docs/protocol-push.md.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http';
import { fromHex, toHex } from '../../foundation/bytes.ts';
import { asMap, decodeCbor, encodeCbor, isBytes } from '../../foundation/cbor.ts';
import {
  MAX_NOTIFICATION_BYTES,
  MAX_NOTIFICATION_HEADER_CHARS,
  MAX_NOTIFICATION_HEADERS,
  NOTIFICATION_ID_BYTES,
  WEBHOOK_NAME_BYTES,
} from '../../foundation/domain/push.ts';
import type { NewNotification } from '../../foundation/store/webhooks.ts';
import type { LinkStream } from '../../network/links/types.ts';
import { BinaryReader, LENGTH_BYTES, readExactly, readFrame, u16, u32 } from '../../network/links/wire.ts';

const VERSION = 1;
/** So much of a message is read at a time, bytes: less than a stream buffers. */
const PART_BYTES = 16 * 1024;
/** Longest message with a notification, bytes: beside body and headers it has some members. */
const MAX_MESSAGE_BYTES: number = MAX_NOTIFICATION_BYTES + 4 * MAX_NOTIFICATION_HEADER_CHARS + 1024;
/** Longest address of a mailbox, bytes. */
const MAX_BOX_URL_BYTES = 256;
/** What the called side answers to who asks for a mailbox, before its address. */
const BOX_ANSWERS = ['open', 'full', 'elsewhere'] as const;
/** What the caller's side answers to a notification. */
const ANSWERS = ['kept', 'gone', 'full', 'refused', 'limited'] as const;

/** `full`: no room for one more; `elsewhere`: the server of the agent runs on another machine than its daemon. */
export type BoxAnswer = { readonly url: string } | Exclude<(typeof BOX_ANSWERS)[number], 'open'>;
/** `gone`: there is no such webhook; `full`, `limited`: later; `refused`: never. */
export type NotificationAnswer = (typeof ANSWERS)[number];

/**
 * Names of headers that rule how a request is read, that this machine says itself, or that act beyond the notification. Other
 * marks than `-` are those too: CGI-like servers do not tell them apart.
 */
const NEVER_KEPT =
  /^(?:accept.*|connection|content-length|cookie2?|expect|forwarded|host|keep-alive|origin|proxy(?:-.*)?|referer|sec-.*|svc-.*|te|trailer|transfer-encoding|upgrade.*|user-agent|via|x-forwarded-.*|x-http-method.*|x-method-override|x-real-ip)$/;

/** True for a header of a notification that may reach a webhook. */
export function isKeptHeader(name: string): boolean {
  return !NEVER_KEPT.test(name.toLowerCase().replace(/[^a-z0-9]/g, '-'));
}

/** True for what names a webhook. */
export function isWebhookName(text: string): boolean {
  return text.length === 2 * WEBHOOK_NAME_BYTES && /^[0-9a-f]+$/.test(text);
}

/** Asks for a mailbox: the link itself says who asks for whose. Rejects as `readFrame`; null where the answer makes no sense. */
export async function askForBox(link: LinkStream, signal: AbortSignal): Promise<BoxAnswer | null> {
  // protocol-push.md, steps 1 and 2
  link.end();
  const [number = 255] = await readExactly(link, 1, signal);
  const answer = BOX_ANSWERS[number];
  if (answer === undefined) return null;
  if (answer !== 'open') return answer;
  const url = Buffer.from(await readFrame(link, MAX_BOX_URL_BYTES, signal)).toString('latin1');
  return /^http:\/\/127\.0\.0\.1:\d{1,5}\/[A-Za-z0-9_-]{1,128}$/.test(url) ? { url } : null;
}

export function answerBox(link: LinkStream, answer: BoxAnswer): void {
  if (typeof answer === 'string') return void link.end(Uint8Array.of(BOX_ANSWERS.indexOf(answer)));
  const url = Buffer.from(answer.url, 'latin1');
  link.end(Buffer.concat([Uint8Array.of(BOX_ANSWERS.indexOf('open')), u16(url.length), url]));
}

export function encodeNotification({ webhook, id, headers, body }: NewNotification): Uint8Array {
  return encodeCbor({ v: VERSION, w: webhook, i: fromHex(id) ?? new Uint8Array(), h: headers, b: body });
}

/** Null where a stranger wrote something else. */
export function decodeNotification(bytes: Uint8Array): NewNotification | null {
  let value: unknown;
  try {
    value = decodeCbor(bytes, MAX_MESSAGE_BYTES);
  } catch {
    return null;
  }
  const map = asMap(value, ['v', 'w', 'i', 'h', 'b']);
  if (map === null || map['v'] !== VERSION) return null;
  const { w: webhook, i: id, h: headers, b: body } = map;
  if (typeof webhook !== 'string' || !isWebhookName(webhook) || !isBytes(id, NOTIFICATION_ID_BYTES)) return null;
  if (!(body instanceof Uint8Array) || body.length > MAX_NOTIFICATION_BYTES || !isHeaderList(headers)) return null;
  return { webhook, id: toHex(id), headers, body };
}

/** Names and values in turn, as HTTP allows them, and none that rules more than the notification. */
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
        if (!isKeptHeader(text)) return false;
      } else validateHeaderValue('x', text);
    } catch {
      return false;
    }
  }
  return true;
}

/** Hands a notification over; null where the answer makes no sense. Rejects as `readExactly`. */
export async function offerNotification(
  link: LinkStream,
  notification: NewNotification,
  signal: AbortSignal,
): Promise<NotificationAnswer | null> {
  const bytes = encodeNotification(notification);
  link.write(u32(bytes.length));
  link.end(bytes);
  const [number = 255] = await readExactly(link, 1, signal);
  return ANSWERS[number] ?? null;
}

/** Reads a notification; null where it is none. Rejects as `readExactly`. */
export async function readNotification(link: LinkStream, signal: AbortSignal): Promise<NewNotification | null> {
  const length = new BinaryReader(await readExactly(link, LENGTH_BYTES, signal)).u32();
  if (length > MAX_MESSAGE_BYTES) return null;
  return decodeNotification(await readWhole(link, length, signal));
}

/** As `readExactly`, for more than the stream holds at a time. */
async function readWhole(link: LinkStream, length: number, signal: AbortSignal): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (let left = length; left > 0; ) {
    const part = await readExactly(link, Math.min(left, PART_BYTES), signal);
    parts.push(part);
    left -= part.length;
  }
  return Buffer.concat(parts);
}

export function answerNotification(link: LinkStream, answer: NotificationAnswer): void {
  link.end(Uint8Array.of(ANSWERS.indexOf(answer)));
}
