/** One step of a walk through the commands: the required output of a command in every output format. */
import { type TSchema, Type } from 'typebox';
import type { TestDaemon } from './daemon.ts';

/** The required output of a command. */
export interface Expected {
  /** Schema of the `--json` document. Null if it prints lines, or something else. */
  readonly schema: TSchema | null;
  /** With `--json` it prints one document per line. */
  readonly lines?: true;
  /** Pattern for the text output. */
  readonly text: RegExp;
  /** Pattern for the complete `--quiet` output. */
  readonly quiet: RegExp;
  /** Allowed exit codes. Default: 0. */
  readonly codes?: readonly number[];
  readonly input?: string;
}

export type Step = (at: TestDaemon, args: readonly string[], expected: Expected) => Promise<void>;

export interface WalkWorld {
  readonly here: TestDaemon;
  readonly there: TestDaemon;
  /** Address of a web service. */
  readonly service: string;
  /** An empty directory for files. */
  readonly directory: string;
}

const AID = 'aid1[0-9a-z]+';
export const ONE_AID = new RegExp(`^${AID}$`);
export const AIDS = new RegExp(`^(${AID}\n?)*$`);
export const HEX = /^[0-9a-f]{64}$/;
export const ID = /^[\w-]+$/;
export const SEQ = /^\d+$/;
export const ADDRESS = /^127\.0\.0\.1:\d+$/;
export const ANY = /^[\s\S]*$/;
export const SOME = /\S/;
/** The response of operations without a result. */
export const Ok = Type.Object({ ok: Type.Literal(true) });
