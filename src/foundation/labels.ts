/**
 * Labels of agents: the user's names for AIDs. The daemon, the commands and the panel compare and show them with these
 * functions. Light, so that a page and a short command load it cheaply.
 */
import { cleanPasted } from './pasted.ts';

/** AID to label. */
export type Labels = Readonly<Record<string, string>>;

/** The labels of an address book. */
export interface LabelBook {
  /** AID to the label that is shown. */
  readonly aliases: Labels;
  /** AID to further labels, which are accepted like the first one. */
  readonly other_labels?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** Local agents with the names of their profiles. */
export type NamedAgents = readonly { readonly aid: string; readonly name?: string | undefined }[];

/** A label as it is compared: case, surrounding blanks and the encoding of accents do not matter. */
export function foldLabel(text: string): string {
  return text.trim().toLowerCase().normalize('NFC');
}

/** All labels of a book with their agents. The label that is shown comes first. */
export function labelsOf({ aliases, other_labels: others = {} }: LabelBook): [label: string, aid: string][] {
  return Object.entries(aliases).flatMap(([aid, label]) =>
    [label, ...(others[aid] ?? [])].map((one): [string, string] => [one, aid]),
  );
}

/**
 * The agents that a name stands for: the one with this label, or else the local agents whose profile has this name.
 * Several only if local agents share a name. Quotes around a pasted name are ignored: see pasted.ts.
 */
export function agentsNamed(text: string, book: LabelBook, own: NamedAgents): string[] {
  const found = agentsFolded(foldLabel(text), book, own);
  return found.length > 0 ? found : agentsFolded(foldLabel(cleanPasted(text)), book, own);
}

function agentsFolded(wanted: string, book: LabelBook, own: NamedAgents): string[] {
  if (wanted === '') return [];
  const labeled = labelsOf(book).find(([label]) => foldLabel(label) === wanted);
  if (labeled !== undefined) return [labeled[1]];
  return own.flatMap(({ aid, name }) => (name !== undefined && foldLabel(name) === wanted ? [aid] : []));
}

/** Names to show: labels first, then the profile names of local agents that nothing else uses. */
export function mergeNames(book: LabelBook, own: NamedAgents): Map<string, string> {
  const names = new Map(Object.entries(book.aliases));
  const taken = [...labelsOf(book).map(([label]) => label), ...own.flatMap(({ name }) => name ?? [])].map(foldLabel);
  for (const { aid, name } of own)
    if (name !== undefined && !names.has(aid) && taken.filter((one) => one === foldLabel(name)).length === 1)
      names.set(aid, name);
  return names;
}

/** Shortest AID prefix that is shown, and the shortest that commands accept. */
export const SHOWN_AID_CHARS = 12;

/** The start of an AID, with an ellipsis. @param chars length of the start; more if the start must be unique */
export function shortAid(aid: string, chars: number = SHOWN_AID_CHARS): string {
  return aid.length <= chars ? aid : `${aid.slice(0, chars)}…`;
}

/** Text that is no new label. */
const ADDRESSES: readonly RegExp[] = [
  // AIDs, also incomplete ones, and wallet addresses.
  /^(?:aid1|did:|0x[0-9a-f]*$|(?:bc|pr)1[02-9ac-hj-np-z]{8,}$)/i,
  /^1[1-9A-HJ-NP-Za-km-z]{24,}$/,
  // Keys and IDs in hex, and keys of did:key.
  /^(?:[0-9a-f]{16,}|z6mk[1-9a-z]{20,})$/i,
  // Hosts, ports, paths and URLs.
  /^(?:localhost|\d{1,3}(?:\.\d{1,3}){3})$|^\[|:\d*$|[/\\]/i,
];

/**
 * True for text that looks like an AID, a key, an ID, a host or a path. As a label it could hide a typo: a mistyped AID
 * would lead to another agent.
 */
export function looksLikeAddress(text: string): boolean {
  return ADDRESSES.some((form) => form.test(text));
}
