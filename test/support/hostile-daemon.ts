/**
 * A daemon whose responses are valid and hostile: each text contains terminal control sequences. A real daemon forwards
 * some texts of strangers.
 */
import type { TestContext } from 'node:test';
import { SchemaDaemon } from './schema-daemon.ts';

/** Titles, colors, cursor movements, an 8-bit escape, hidden and reordered text, and an extra line. */
export const HOSTILE =
  '\u001b]0;owned\u0007\u001b[2J\u009b31mred\u202egnp.exe\u200b\u{e0041}\u2028x\rline\nsvc: forged' +
  '\u001b]8;;https://evil.example\u001b\\link\u001b]8;;\u0007\u009d52;c;b3duZWQ=\u009c\u2066\u3164\u034f\u{e0100}';

/** Starts it and returns its address. With `refuses`, every response is an error with a hostile message. */
export async function hostileDaemon(t: TestContext, aid: string, refuses: boolean): Promise<string> {
  const { api } = await SchemaDaemon.start(t, {
    text: () => HOSTILE,
    aid: () => aid,
    time: () => '2026-01-01T00:00:00.000Z',
    number: (least) => least ?? 1,
    pick: () => 0,
    isLean: () => false,
    items: () => 1,
    ...(refuses ? { refusal: { error: 'access_denied', message: HOSTILE, details: { path: HOSTILE } } } : {}),
  });
  return api;
}
