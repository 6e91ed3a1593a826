import { write, writeSync } from 'node:fs';
import { pino } from 'pino';
import { type Clock, isoTime } from './clock.ts';
import { escapeUnsafe, textLine } from './display-text.ts';
import { codeOf, SvcError } from './errors.ts';
import type { Log, LogFields, LogFormat, LogLevel } from './log.ts';

// Sanitizes log lines: redacts secrets that were passed by mistake, and escapes and shortens remote input. Callers
// still must not pass secrets.

const HIDDEN = '[hidden]';
const SECRET_NAME = /token|secret|private|passw|passphrase|seed|authorization|credential|cookie|mnemonic/i;
const BEARER = /\b(bearer|basic)\s+[^\s",;]+/gi;
/** Field names that the log line itself uses. */
const RESERVED: ReadonlySet<string> = new Set(['level', 'time', 'component', 'msg']);

/** Maximum length of one value in a log line, in characters. */
const MAX_TEXT_LENGTH = 2000;
/** Maximum nesting depth of a value in a log line. */
const MAX_DEPTH = 5;
/** Maximum number of members of one object or list in a log line. */
const MAX_MEMBERS = 50;

/** Fields that may be logged: plain JSON values without secrets, bounded in size. */
function safeFields(fields: LogFields): Record<string, unknown> {
  return Object.fromEntries(
    members(fields).map(([name, value]) => [RESERVED.has(name) ? `${name}_` : name, safeMember(name, value, 1)]),
  );
}

/** Redacts credentials of HTTP headers in a text and shortens it. */
function safeLogText(text: string): string {
  const short = text.length > MAX_TEXT_LENGTH ? `${text.slice(0, MAX_TEXT_LENGTH)}… (${text.length} characters)` : text;
  return short.replace(BEARER, `$1 ${HIDDEN}`);
}

function members(value: object): [string, unknown][] {
  return Object.entries(value).slice(0, MAX_MEMBERS);
}

function safeMember(name: string, value: unknown, depth: number): unknown {
  const harmless = value === null || value === undefined || typeof value === 'boolean';
  return SECRET_NAME.test(name) && !harmless ? HIDDEN : safeValue(value, depth);
}

function safeValue(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case 'string':
      return safeLogText(value);
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'bigint':
      return String(value);
    case 'object':
      return value === null ? null : safeObject(value, depth);
    case 'boolean':
      return value;
    default:
      return undefined;
  }
}

function safeObject(value: object, depth: number): unknown {
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (depth >= MAX_DEPTH) return '[…]';
  if (Array.isArray(value)) return value.slice(0, MAX_MEMBERS).map((item) => safeValue(item, depth + 1));
  if (value instanceof Error) return safeError(value, depth);
  if ('toJSON' in value && typeof value.toJSON === 'function') return safeValue(value.toJSON(), depth + 1);
  const prototype: unknown = Object.getPrototypeOf(value);
  // Fields of class instances are private and may be keys.
  if (prototype !== Object.prototype && prototype !== null) return `[${value.constructor.name}]`;
  return Object.fromEntries(members(value).map(([name, member]) => [name, safeMember(name, member, depth + 1)]));
}

/** An SvcError is complete with code and message; other errors need their stack. */
function safeError(error: Error, depth: number): Record<string, unknown> {
  const code: unknown = 'code' in error ? error.code : undefined;
  const expected = error instanceof SvcError;
  return {
    type: error.name,
    code: safeValue(code, depth + 1),
    message: safeLogText(error.message),
    details: expected ? safeValue(error.details, depth + 1) : undefined,
    stack: expected || error.stack === undefined ? undefined : safeLogText(error.stack),
    cause: safeValue(error.cause, depth + 1),
  };
}

// Writes lines to a file descriptor in the background. A reader that stops or disconnects, or a full disk, never
// fails the program that writes.

/** Maximum bytes queued for a slow reader; further lines are dropped. */
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
/** Retry delay after temporary errors, in milliseconds: a full non-blocking pipe, a full disk. */
const RETRY_MS: ReadonlyMap<string, number> = new Map([
  ['EAGAIN', 50],
  ['ENOSPC', 500],
  ['EDQUOT', 500],
]);

export class LineWriter {
  readonly #fd: number;
  readonly #clock: Clock;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  /** Also true between two attempts. */
  #isWriting = false;

  constructor(fd: number, { clock }: { readonly clock: Clock }) {
    this.#fd = fd;
    this.#clock = clock;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) return;
    this.#waiting.push(bytes);
    this.#waitingBytes += bytes.length;
    if (!this.#isWriting) this.#next();
  }

  /** Writes the queued lines before the process exits, as far as the reader accepts them without blocking. */
  flushSync(): void {
    let rest = this.#take();
    try {
      while (rest.length > 0) rest = rest.subarray(writeSync(this.#fd, rest));
    } catch {
      // The exiting process does not wait for a reader or for disk space.
    }
  }

  /** Removes all queued lines and returns them as one buffer. */
  #take(): Buffer {
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#waitingBytes = 0;
    return bytes;
  }

  #next(): void {
    this.#isWriting = this.#waiting.length > 0;
    if (this.#isWriting) this.#put(this.#take());
  }

  #put(bytes: Buffer): void {
    write(this.#fd, bytes, (error, written) => {
      if (error === null && written === bytes.length) return this.#next();
      if (error === null) return this.#put(bytes.subarray(written));
      const retryMs = RETRY_MS.get(codeOf(error));
      // Any other error drops these lines. The next lines are still tried, because the error may be temporary.
      if (retryMs === undefined) return this.#next();
      this.#waiting.unshift(bytes);
      this.#waitingBytes += bytes.length;
      this.#clock.after(retryMs, () => this.#next());
    });
  }
}

interface LoggerOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  /** At level `info`, the destination receives warnings and errors only: a user reads it. Other levels are a choice. */
  readonly isForUser?: boolean;
}

/** Destination of log lines; each line ends with a line break. */
export interface LogDestination {
  write(line: string): void;
  /** Writes buffered lines. */
  flushSync?(): void;
}

interface LoggerDependencies {
  readonly clock: Clock;
  /** Default: stderr. stdout carries results, and MCP messages in stdio mode. */
  readonly destination?: LogDestination;
  /** Receives each written line as JSON. */
  readonly recent?: { add(json: string): void };
}

const STDERR_FD = 2;

/** The root logger of a daemon. Level and format can change at runtime, also for children. */
export class Logger implements Log {
  readonly #pino: pino.Logger;
  readonly #destination: LogDestination;
  readonly #recent: LoggerDependencies['recent'];
  readonly #isForUser: boolean;
  #format: LogFormat;
  /** The line that is written now goes to the recent lines only. */
  #isHidden = false;

  constructor(options: LoggerOptions, dependencies: LoggerDependencies) {
    const { clock } = dependencies;
    this.#format = options.format;
    this.#isForUser = options.isForUser ?? false;
    this.#recent = dependencies.recent;
    this.#destination = dependencies.destination ?? new LineWriter(STDERR_FD, { clock });
    this.#pino = pino(
      {
        level: options.level,
        base: null,
        timestamp: () => `,"time":"${isoTime(clock.now())}"`,
        formatters: { level: (label) => ({ level: label }) },
      },
      { write: (json: string) => this.#write(json) },
    );
  }

  debug(fields: LogFields, message: string): void {
    this.#log('debug', undefined, fields, message);
  }

  info(fields: LogFields, message: string): void {
    this.#log('info', undefined, fields, message);
  }

  warn(fields: LogFields, message: string): void {
    this.#log('warn', undefined, fields, message);
  }

  error(fields: LogFields, message: string): void {
    this.#log('error', undefined, fields, message);
  }

  /** Not a pino child: those keep the level that they were created with. */
  child(component: string): Log {
    return {
      debug: (fields, message) => this.#log('debug', component, fields, message),
      info: (fields, message) => this.#log('info', component, fields, message),
      warn: (fields, message) => this.#log('warn', component, fields, message),
      error: (fields, message) => this.#log('error', component, fields, message),
      child: (inner) => this.child(`${component}.${inner}`),
    };
  }

  setLevel(level: LogLevel): void {
    this.#pino.level = level;
  }

  setFormat(format: LogFormat): void {
    this.#format = format;
  }

  /** Writes buffered lines before the process exits. */
  flush(): void {
    this.#destination.flushSync?.();
  }

  #log(level: LogLevel, component: string | undefined, fields: LogFields, message: string): void {
    if (!this.#pino.isLevelEnabled(level)) return;
    this.#isHidden = this.#isForUser && level === 'info' && this.#pino.level === 'info';
    const safe = safeFields(fields);
    // Passed as an argument of "%s", so that a "%" in the message is not interpreted.
    this.#pino[level](component === undefined ? safe : { component, ...safe }, '%s', safeLogText(message));
  }

  #write(json: string): void {
    this.#recent?.add(json);
    if (this.#isHidden) return;
    this.#destination.write(this.#format === 'json' ? `${escapeUnsafe(json.trimEnd())}\n` : `${textLine(json)}\n`);
  }
}
