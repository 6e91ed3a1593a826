/** Changes of the address book by programs: what others write meanwhile is kept. */
import { SvcError } from '../foundation/errors.ts';
import type { addressBookOperations } from './address-book.ts';
import type { Client } from './client.ts';

/** Another writer came between so often: it is said. */
const MAX_TRIES = 8;
/** HTTP: the book is no longer the one that was read. */
const CHANGED = 412;

type Labels = Readonly<Record<string, string>>;

/**
 * Changes the labels: the book is read before, and where somebody else wrote meanwhile, read and changed again.
 * @throws SvcError what `edit` throws, and what the daemon answers
 */
export async function changeLabels(
  client: Client<typeof addressBookOperations>,
  edit: (labels: Labels) => Labels,
  tries = MAX_TRIES,
): Promise<void> {
  let ifMatch: string | undefined;
  const onVersion = (etag: string): void => {
    ifMatch = etag;
  };
  const { aliases, favorites } = await client.addressBookGet({}, { onVersion });
  try {
    await client.addressBookPut({ aliases: edit(aliases), favorites }, { ifMatch });
  } catch (error) {
    if (!(error instanceof SvcError) || error.status !== CHANGED || tries === 1) throw error;
    await changeLabels(client, edit, tries - 1);
  }
}
