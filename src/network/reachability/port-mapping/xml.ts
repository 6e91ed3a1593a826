/**
 * As much XML as routers' descriptions and answers need: elements by their local name, and the text in them. Not a
 * parser: no entity but the five, no document type, nothing is fetched. Time grows with the length of the text alone.
 */

/** A tag, opening or closing, with or without a prefix and attributes; names and attributes are bounded. */
const TAG = /<(\/?)(?:[A-Za-z_][\w.-]{0,40}:)?([A-Za-z_][\w.-]{0,80})(?:\s[^<>]{0,500})?\/?>/g;
const ENTITIES: Readonly<Record<string, string>> = {
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '&amp;': '&',
};

/** What stands between the tags of each element of that name, from outermost to its own closing tag; at most `max`. */
export function elementsOf(xml: string, name: string, max: number): string[] {
  const found: string[] = [];
  let start = -1;
  let depth = 0;
  for (const match of xml.matchAll(TAG)) {
    const [tag, closing, local] = match;
    if (local !== name || tag.endsWith('/>')) continue;
    if (closing === '' && depth++ === 0) start = match.index + tag.length;
    if (closing === '/' && depth > 0 && --depth === 0) found.push(xml.slice(start, match.index));
    if (found.length === max) break;
  }
  return found;
}

/** The text of the first element of that name, without blanks around it; null without one, and where it has others in it. */
export function elementText(xml: string, name: string): string | null {
  const [inner] = elementsOf(xml, name, 1);
  if (inner === undefined || inner.includes('<')) return null;
  return inner.replaceAll(/&(?:lt|gt|quot|apos|amp);/g, (entity) => ENTITIES[entity] ?? entity).trim();
}

/** Text as it may stand in an element. */
export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
