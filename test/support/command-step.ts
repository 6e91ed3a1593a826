/** One step of a walk through the commands: what a command must print, in every way of showing it. */
import { type TSchema, Type } from 'typebox';
import type { TestDaemon } from './daemon.ts';

/** What a command must print. */
export interface Expected {
  /** Of the document that `--json` prints; null where it prints lines, or something else. */
  readonly schema: TSchema | null;
  /** With `--json` it prints such a document in each line. */
  readonly lines?: true;
  /** What the text for people holds. */
  readonly text: RegExp;
  /** All of what `--quiet` prints. */
  readonly quiet: RegExp;
  /** 0 where left out. */
  readonly codes?: readonly number[];
  readonly input?: string;
}

export type Step = (at: TestDaemon, args: readonly string[], expected: Expected) => Promise<void>;

export interface WalkWorld {
  readonly here: TestDaemon;
  readonly there: TestDaemon;
  /** Address of a web service. */
  readonly service: string;
  /** A directory for files, fresh for each walk. */
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
/** The answer of what only succeeds or fails. */
export const Ok = Type.Object({ ok: Type.Literal(true) });
