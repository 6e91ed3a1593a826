/** Formats log lines as text, from the JSON that the logger writes. */

/** Fields that the logger adds to each line. */
interface LineParts {
  readonly time: string;
  readonly level: string;
  readonly component?: string;
  readonly msg: string;
}

/**
 * Characters that move a terminal's cursor, break a line, change the text direction or are invisible. These are control
 * and format characters (C1 too: one of them starts escape sequences), separators, and invisible characters such as
 * fillers and variation selectors, which can hide one text in another. Variation selectors after an emoji are kept.
 */
export const UNSAFE = /(?!(?<=\p{Emoji})[\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Escapes unsafe characters as `\uXXXX`. Inside JSON strings this does not change the value. */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, (char) =>
    Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** Formats one JSON line as `2026-01-01T00:00:00.000Z INFO dht: joined peers=3 from="a b"`, without a line break. */
export function textLine(json: string): string {
  const { time, level, component, msg, ...fields } = JSON.parse(json) as LineParts & Record<string, unknown>;
  const from = component === undefined ? '' : `${component}: `;
  const pairs = Object.entries(fields).map(([name, value]) => ` ${word(name)}=${word(value)}`);
  return escapeUnsafe(`${time} ${level.toUpperCase().padEnd(5)} ${from}${msg}${pairs.join('')}`);
}

/** Quotes a value unless it is one plain word, so that a value cannot imitate another field. */
function word(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=\\[\]{},]+$/.test(value) ? value : JSON.stringify(value);
}
