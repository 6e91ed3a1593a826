/** Texts with values and plural forms. */

/** A text that depends on a number, with one form for each category of `Intl.PluralRules` in the language. */
export type Plural = Readonly<Partial<Record<Intl.LDMLPluralRule, string>>> & { readonly other: string };
export type Text = string | Plural;
export type Values = Readonly<Record<string, string | number>>;

/** Places for values in a text: `{name}`. */
export const PLACE = /\{(\w+)\}/g;

/** The form of a text for the number `n`. */
export function formOf(text: Text, language: string, n: number): string {
  return typeof text === 'string' ? text : (text[new Intl.PluralRules(language).select(n)] ?? text.other);
}

/** Splits a text at its places: texts at even indices, names of values at odd indices. */
export function partsOf(form: string): readonly string[] {
  return form.split(PLACE);
}

/** A text with its values. Numbers have the format of the language. */
export function fill(text: Text, language: string, values: Values): string {
  const { n } = values;
  return formOf(text, language, typeof n === 'number' ? n : 0).replaceAll(PLACE, (place, name: string) => {
    const value = values[name];
    if (typeof value === 'number') return new Intl.NumberFormat(language).format(value);
    return value ?? place;
  });
}
