/** Least important level first. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export const LOG_FORMATS = ['text', 'json'] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/**
 * The logger that components receive. Never log secrets or message contents, at any level. AIDs, addresses, sizes and
 * error codes are allowed.
 */
export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** A logger that adds the component's name to each line. */
  child(component: string): Log;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** A logger that discards everything, for tests and for tools that print their own output. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};
