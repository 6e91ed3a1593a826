import { pino } from 'pino';
import { type Clock, isoTime } from './clock.ts';
import { LineWriter } from './line-writer.ts';
import type { Log, LogFields, LogFormat, LogLevel } from './log.ts';
import { safeFields, safeLogText } from './log-safety.ts';
import { escapeUnsafe, textLine } from './log-text.ts';

interface LoggerOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
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
  #format: LogFormat;

  constructor(options: LoggerOptions, dependencies: LoggerDependencies) {
    const { clock } = dependencies;
    this.#format = options.format;
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
    const safe = safeFields(fields);
    // Passed as an argument of "%s", so that a "%" in the message is not interpreted.
    this.#pino[level](component === undefined ? safe : { component, ...safe }, '%s', safeLogText(message));
  }

  #write(json: string): void {
    this.#recent?.add(json);
    this.#destination.write(this.#format === 'json' ? `${escapeUnsafe(json.trimEnd())}\n` : `${textLine(json)}\n`);
  }
}
