/**
 * Reads MCP messages of other programs. Invalid input never ends a session: it is reported, so that it gets an error
 * response.
 */
import { type JSONRPCMessage, ProtocolErrorCode, parseJSONRPCMessage } from '@modelcontextprotocol/server';
import { RPC_MEMBERS } from '../../foundation/domain/services.ts';
import {
  BACKSLASH,
  isNestedDeeper,
  isObject,
  isRawNumber,
  memberOf,
  parseIntegers,
  QUOTE,
} from '../../foundation/json.ts';
import { refusedMember, repeatedName, twinIn } from '../../foundation/rpc-message.ts';

// One message. All surfaces read foreign messages with these functions.

/** Largest message of a caller or the server, in bytes. */
export const MAX_SHARED_MESSAGE_BYTES: number = 10 * 1024 * 1024;
/** The reason for the rejection of a longer one. */
export const TOO_LONG = `The message is longer than ${MAX_SHARED_MESSAGE_BYTES} bytes.`;
/** Messages of a batch, which one revision has. */
const MAX_BATCH_MESSAGES = 1000;
/** Deepest nesting of a message. Recursive code handles this many levels. */
const MAX_MESSAGE_DEPTH = 500;

/** Something that is not a message. */
export interface OddMessage {
  readonly kind: 'request' | 'response' | 'other';
  /** Its ID with the digits that the sender wrote, for the error response. Null if it has no usable ID. */
  readonly id: unknown;
  readonly code: number;
  readonly why: string;
}

/** The error response to something that is not a message. */
export function answerTo({ id, code, why }: OddMessage): Readonly<Record<string, unknown>> {
  return { jsonrpc: '2.0', id, error: { code, message: why } };
}

const MEMBERS: ReadonlySet<string> = new Set(RPC_MEMBERS);

function kindOf(message: unknown): OddMessage['kind'] {
  if (!isObject(message)) return 'other';
  if (message['method'] !== undefined) return message['id'] === undefined ? 'other' : 'request';
  return 'result' in message || 'error' in message ? 'response' : 'other';
}

/** The ID as an error response can repeat it. */
function repeatableId(id: unknown): unknown {
  return typeof id === 'string' || typeof id === 'number' || isRawNumber(id) ? id : null;
}

/** The reason why a parsed value is not a message. */
function problemOf(value: unknown): string {
  if (!isObject(value)) return 'A message must be a JSON object.';
  const { id, method, jsonrpc } = value;
  if (id !== undefined && typeof id !== 'string' && !Number.isSafeInteger(id))
    return `The ID of a message must be a text or an integer from -${Number.MAX_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}.`;
  if (jsonrpc !== '2.0') return 'A message must have the member "jsonrpc" with the value "2.0".';
  if (kindOf(value) === 'other' && method === undefined) return 'A message must have a method, a result or an error.';
  return 'The message is not valid JSON-RPC: check the types of its members, and remove unknown ones.';
}

/** Optional members of `params`. */
const OPTIONAL_PARAMS = ['_meta', 'arguments', 'cursor'];

function without(value: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([name, member]) => member !== null || !names.includes(name)));
}

/** A message without optional members that are null: many programs send null instead of leaving a member out. */
export function withoutNulls(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { params, result, error } = value;
  const absent = ['params', ...(isObject(result) ? ['error'] : []), ...(isObject(error) ? ['result'] : [])];
  const message = without(value, absent);
  if (isObject(params)) message['params'] = without(params, OPTIONAL_PARAMS);
  return message;
}

/** The notification of a permission prompt by Claude Code. */
export const PERMISSION_REQUEST = 'notifications/claude/channel/permission_request';

/** The notification of a prompt without its ID, which is spelled like another member. */
function withoutPromptId(value: unknown): unknown {
  const params = memberOf(value, 'params');
  if (!isObject(value) || !isObject(params) || value['method'] !== PERMISSION_REQUEST) return value;
  const { request_id: _, ...others } = params;
  return Object.hasOwn(params, 'requestId') ? value : { ...value, params: others };
}

/** Reads a value of `parseIntegers`. */
export function readMessageValue(read: unknown): { readonly message: JSONRPCMessage } | { readonly odd: OddMessage } {
  const value = withoutNulls(read);
  const twin = twinIn(withoutPromptId(value));
  let why = twin === undefined ? undefined : refusedMember(twin);
  if (why === undefined)
    try {
      return { message: parseJSONRPCMessage(value) };
    } catch {
      why = problemOf(value);
    }
  const id = repeatableId(memberOf(value, 'id'));
  return { odd: { kind: kindOf(value), id, code: ProtocolErrorCode.InvalidRequest, why } };
}

// Messages that are too long to be parsed.

const COLON = 0x3a;
const COMMA = 0x2c;
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
/** Bytes of a name or an ID that are kept. Longer ones cannot be repeated in an error response. */
const MAX_KEPT_BYTES = 1024;

/** Finds out what a message is about without storing it. Reads the members of its outermost object only. */
export class MessageScan {
  #depth = 0;
  #inString = false;
  #isEscaped = false;
  /** Undefined before the first bracket. */
  #isObject: boolean | undefined;
  /** The name that was read last, and whether its value follows. */
  #name = '';
  #inValue = false;
  #kept: number[] = [];
  readonly #found = new Map<string, string>();

  push(bytes: Uint8Array): void {
    for (const byte of bytes) this.#take(byte);
  }

  /** The report about a message that is too long. */
  get odd(): OddMessage {
    const has = (name: string): boolean => this.#found.has(name);
    const id = this.#id();
    const isRequest = has('method') && has('id');
    const kind = isRequest ? 'request' : has('result') || has('error') ? 'response' : 'other';
    return { kind, id, code: ProtocolErrorCode.InvalidRequest, why: TOO_LONG };
  }

  #id(): unknown {
    try {
      return repeatableId(parseIntegers(this.#found.get('id') ?? 'null'));
    } catch {
      return null;
    }
  }

  #take(byte: number): void {
    if (this.#inString) {
      this.#keep(byte);
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) this.#inString = false;
      return;
    }
    if (byte === QUOTE) this.#inString = true;
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      this.#isObject ??= byte === OPEN_OBJECT;
      if (++this.#depth === 1) return;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      if (this.#depth-- === 1) return this.#ended();
    } else if (this.#depth === 1 && byte === COMMA) return this.#ended();
    else if (this.#depth === 1 && byte === COLON) return this.#named();
    this.#keep(byte);
  }

  #keep(byte: number): void {
    if (this.#isObject === true && this.#depth === 1 && this.#kept.length <= MAX_KEPT_BYTES) this.#kept.push(byte);
  }

  #text(): string {
    const text = this.#kept.length > MAX_KEPT_BYTES ? '' : Buffer.from(this.#kept).toString();
    this.#kept = [];
    return text;
  }

  #named(): void {
    this.#name = this.#text().trim().replaceAll('"', '');
    this.#inValue = true;
  }

  #ended(): void {
    const text = this.#text();
    // The members of a message are few. Others are not of interest.
    if (this.#inValue && MEMBERS.has(this.#name)) this.#found.set(this.#name, text);
    this.#inValue = false;
  }
}

// Lines.

const LINE_FEED = 0x0a;

/** Splits bytes into lines. A line that is too long is scanned instead of stored. */
export class Lines {
  readonly #startsMessage: (first: number) => boolean;
  #chunks: Buffer[] = [];
  #length = 0;
  #scan: MessageScan | null = null;
  /** The present line is dropped. */
  #isDropped = false;

  /** @param startsMessage false for the first byte of a line to drop. A flood of these lines costs little. */
  constructor(startsMessage: (first: number) => boolean = () => true) {
    this.#startsMessage = startsMessage;
  }

  /** The lines that the bytes complete, without their line feeds. */
  push(chunk: Buffer): (Buffer | MessageScan)[] {
    const lines: (Buffer | MessageScan)[] = [];
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
      this.#add(chunk.subarray(from, at));
      if (this.#length === 0) this.#isDropped = !this.#startsMessage(LINE_FEED);
      if (!this.#isDropped) lines.push(this.#scan ?? Buffer.concat(this.#chunks));
      this.clear();
      from = at + 1;
    }
    this.#add(chunk.subarray(from));
    return lines;
  }

  /** The last line, which has no line feed. Null if there is none. */
  end(): Buffer | MessageScan | null {
    const isThere = !this.#isDropped && this.#length > 0;
    return isThere ? (this.#scan ?? Buffer.concat(this.#chunks)) : null;
  }

  clear(): void {
    this.#chunks = [];
    this.#length = 0;
    this.#scan = null;
    this.#isDropped = false;
  }

  #add(part: Buffer): void {
    const [first] = part;
    if (first === undefined) return;
    if (this.#length === 0) this.#isDropped = !this.#startsMessage(first);
    this.#length += part.length;
    if (this.#isDropped) return;
    if (this.#scan === null && this.#length <= MAX_SHARED_MESSAGE_BYTES) return void this.#chunks.push(part);
    if (this.#scan === null) {
      this.#scan = new MessageScan();
      for (const known of this.#chunks) this.#scan.push(known);
      this.#chunks = [];
    }
    this.#scan.push(part);
  }
}

/** First bytes of a line with a message: a bracket, whitespace, or a byte order mark. */
const MESSAGE_START_BYTES = new Set([OPEN_OBJECT, OPEN_LIST, 0x20, 0x09, 0xef]);
const BYTE_ORDER_MARK = '\uFEFF';

export interface MessageLinesOptions {
  /** Receives invalid input in the order of the messages. */
  readonly onOdd: (odd: OddMessage) => void;
  /** Drops lines of plain text, which many servers write. */
  readonly skipsText?: boolean;
}

/**
 * Reads messages in lines, like the reader of the SDK's stdio transports. It preserves large integers, accepts batches,
 * and a line that is not a message does not end the session.
 */
export class MessageLines {
  readonly #options: MessageLinesOptions;
  readonly #lines: Lines;
  readonly #complete: (Buffer | MessageScan)[] = [];
  #batch: Iterator<unknown> = [].values();

  constructor(options: MessageLinesOptions) {
    this.#options = options;
    this.#lines = new Lines(options.skipsText === true ? (first) => MESSAGE_START_BYTES.has(first) : undefined);
  }

  append(chunk: Buffer): void {
    for (const line of this.#lines.push(chunk)) this.#complete.push(line);
  }

  /** The next complete message, or null. */
  readMessage(): JSONRPCMessage | null {
    for (let next = this.#next(); next !== null; next = this.#next()) {
      const read = 'odd' in next ? next : readMessageValue(next.value);
      if ('message' in read) return read.message;
      this.#options.onOdd(read.odd);
    }
    return null;
  }

  clear(): void {
    this.#lines.clear();
    this.#complete.length = 0;
    this.#batch = [].values();
  }

  /** The next value of a line or a batch. Null if there is none yet. */
  #next(): Value | null {
    for (;;) {
      const { done, value } = this.#batch.next();
      if (done !== true) return { value };
      const line = this.#complete.shift();
      if (line === undefined) return null;
      const next = valueOf(line);
      if (next === null) continue;
      if ('odd' in next || !Array.isArray(next.value) || next.value.length === 0) return next;
      if (next.value.length > MAX_BATCH_MESSAGES)
        return { odd: oddLine(`A batch can have at most ${MAX_BATCH_MESSAGES} messages.`) };
      this.#batch = next.value.values();
    }
  }
}

type Value = { readonly value: unknown } | { readonly odd: OddMessage };

function oddLine(why: string, code: number = ProtocolErrorCode.InvalidRequest): OddMessage {
  return { kind: 'other', id: null, code, why };
}

/** The value of a line. Null if the line is empty. */
function valueOf(line: Buffer | MessageScan): Value | null {
  if (line instanceof MessageScan) return { odd: line.odd };
  const text = line.toString().replace(BYTE_ORDER_MARK, '');
  if (text.trim() === '') return null;
  const scanned = (why: string): Value => {
    const scan = new MessageScan();
    scan.push(line);
    return { odd: { ...scan.odd, why } };
  };
  if (isNestedDeeper(text, MAX_MESSAGE_DEPTH))
    return scanned(`The message is nested more than ${MAX_MESSAGE_DEPTH} levels deep.`);
  let value: unknown;
  try {
    value = parseIntegers(text);
  } catch {
    return { odd: oddLine('The line is not JSON.', ProtocolErrorCode.ParseError) };
  }
  const repeated = repeatedName(text);
  return repeated === undefined ? { value } : scanned(refusedMember(repeated));
}

/** Replaces the reader of an SDK stdio transport, which has no option for it. Call it before the transport starts. */
export function readWith<T extends object>(transport: T, reader: MessageLines): T {
  // Fail if the SDK no longer has this field. Setting an unused field would have no effect.
  if (!Reflect.has(transport, '_readBuffer')) throw new Error('the SDK transport no longer has a _readBuffer');
  Reflect.set(transport, '_readBuffer', reader);
  return transport;
}
