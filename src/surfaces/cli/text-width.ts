/** Display width of text in terminal columns. */

/** Patterns for text that is not ASCII. They take 50 ms to compile, so only such text loads them. */
interface Script {
  readonly clusters: Intl.Segmenter;
  readonly visible: RegExp;
  readonly wide: RegExp;
  readonly picture: RegExp;
}

/** Longest grapheme cluster that is tested as an emoji, in UTF-16 units. Real ones are shorter. */
const MAX_PICTURE_UNITS = 50;

let script: Script | undefined;

function theScript(): Script {
  script ??= {
    clusters: new Intl.Segmenter(),
    visible:
      /[^\p{Default_Ignorable_Code_Point}\p{Control}\p{Format}\p{Nonspacing_Mark}\p{Enclosing_Mark}\p{Surrogate}]/v,
    // Wide and full-width characters (Unicode annex 11) by script: East Asian scripts, their punctuation, emoji.
    wide: /[[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Bopomofo}\p{scx=Hangul}\p{scx=Yi}\p{scx=Tangut}\p{scx=Nushu}\p{scx=Khitan_Small_Script}\p{Emoji_Presentation}\u2329\u232A\u2630-\u2637\u268A-\u268F\u2E80-\u303E\u3190-\uA4CF\uFE10-\uFE19\uFE30-\uFE6B\uFF01-\uFF60\uFFE0-\uFFE6\u{1D300}-\u{1D376}\u{1F200}-\u{1F265}]--[\0-\u10FF\u1160-\u11FF\u321F\u3248-\u324F\uA700-\uA707\uD7B0-\uD7FB\uFF61-\uFFDC\uFFE8-\uFFEE]]/v,
    picture: /^(?:\p{RGI_Emoji}|[\d#*]\u20E3|.*\u200D.*\p{Extended_Pictographic}.*)$/v,
  };
  return script;
}

/** Width of one line in columns: two for most East Asian characters and emoji, zero for invisible characters. */
export function textWidth(text: string): number {
  // The ellipsis that shortens IDs is one column wide, and lists contain many ellipses.
  if (/^[ -~…]*$/.test(text)) return text.length;
  const { clusters, visible, wide, picture } = theScript();
  let sum = 0;
  for (const { segment } of clusters.segment(text)) {
    const [first] = visible.exec(segment) ?? [];
    if (first === undefined) continue;
    const isPicture = segment.length <= MAX_PICTURE_UNITS && picture.test(segment);
    sum += isPicture || wide.test(first) ? 2 : 1;
  }
  return sum;
}
