/** Texts of the panel in one language. */

/** A text that depends on a number: one form for each class of `Intl.PluralRules` that the language has. */
export type Plural = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & { readonly other: string };
export type Text = string | Plural;
export type Values = Readonly<Record<string, string | number>>;

/** Places for values in a text: `{name}`. */
export const PLACE = /\{(\w+)\}/g;

/** The form of a text for its number `n`. */
export function formOf(text: Text, language: string, n: number): string {
  return typeof text === 'string' ? text : (text[new Intl.PluralRules(language).select(n)] ?? text.other);
}

/** A text cut at its places: texts at even indices, names of values at odd ones. */
export function partsOf(form: string): readonly string[] {
  return form.split(PLACE);
}

/** A text with its values; numbers as the language writes them. */
export function fill(text: Text, language: string, values: Values): string {
  const { n } = values;
  return formOf(text, language, typeof n === 'number' ? n : 0).replaceAll(PLACE, (place, name: string) => {
    const value = values[name];
    if (typeof value === 'number') return new Intl.NumberFormat(language).format(value);
    return value ?? place;
  });
}
