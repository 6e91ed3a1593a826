/** Suggestions for AIDs by label. */
import { foldLabel } from '../../../src/foundation/labels.ts';

interface Named {
  readonly text: string;
}

/** Most suggestions to show. */
export const MAX_SUGGESTED = 8;

/** The agents whose label or AID contains a text. Labels that begin with it come first. */
export function suggested(names: ReadonlyMap<string, Named>, typed: string): readonly string[] {
  const wanted = typed.trim().toLowerCase();
  const rank = (text: string): number => (text.toLowerCase().startsWith(wanted) ? 0 : 1);
  return [...names]
    .filter(([aid, { text }]) => `${text} ${aid}`.toLowerCase().includes(wanted))
    .toSorted(([, a], [, b]) => rank(a.text) - rank(b.text) || a.text.localeCompare(b.text))
    .slice(0, MAX_SUGGESTED)
    .map(([aid]) => aid);
}

/** The agent with this label. Undefined if there is none, or more than one. */
export function aidOfLabel(names: ReadonlyMap<string, Named>, typed: string): string | undefined {
  const wanted = foldLabel(typed);
  const found = [...names].filter(([, { text }]) => foldLabel(text) === wanted);
  return wanted !== '' && found.length === 1 ? found[0]?.[0] : undefined;
}
