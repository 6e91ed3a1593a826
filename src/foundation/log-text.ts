/** The two forms of a log line, made from the JSON that the logger writes. */

/** What the logger itself puts into each line. */
interface LineParts {
  readonly time: string;
  readonly level: string;
  readonly component?: string;
  readonly msg: string;
}

/**
 * Characters that move a terminal's cursor, break a line, turn the reading direction or are not
 * seen: control and format characters (C1 too: one of them starts escape sequences), separators, and
 * what no font shows, such as fillers and variation selectors, which can hide a text in another one.
 * The selectors that choose between a picture and a sign stay behind an emoji.
 */
export const UNSAFE = /(?!(?<=\p{Emoji})[\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Text with unsafe characters as `\uXXXX`, which inside JSON strings leaves the value as it was. */
export function escapeUnsafe(text: string): string {
  return text.replace(UNSAFE, (char) =>
    Array.from({ length: char.length }, (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** `2026-01-01T00:00:00.000Z INFO  dht: joined peers=3 from="a b"` from one line of JSON; without a line break. */
export function textLine(json: string): string {
  const { time, level, component, msg, ...fields } = JSON.parse(json) as LineParts & Record<string, unknown>;
  const from = component === undefined ? '' : `${component}: `;
  const pairs = Object.entries(fields).map(([name, value]) => ` ${word(name)}=${word(value)}`);
  return escapeUnsafe(`${time} ${level.toUpperCase().padEnd(5)} ${from}${msg}${pairs.join('')}`);
}

/** As it is where it is one plain word, in quotes otherwise, so that a value cannot pass for another pair. */
function word(value: unknown): string {
  return typeof value === 'string' && /^[^\s"=\\[\]{},]+$/.test(value) ? value : JSON.stringify(value);
}
