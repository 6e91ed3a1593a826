/** Operations on the address book: labels for AIDs, and favorites. */
import { Type } from 'typebox';
import { MAX_ALIAS_CHARS, MAX_BOOK_ENTRIES, MAX_LABELS_PER_AGENT } from '../foundation/domain/agents.ts';
import { declare } from './declare.ts';
import { AidText, closed, Timestamp } from './schemas.ts';

const MAX_TEXT_CHARS = 256;
const MAX_PROTOCOLS = 16;

const COMMON = { tag: 'Address book', isDocument: true } as const;

const Text = Type.String({ maxLength: MAX_TEXT_CHARS });
/** Chosen by the client, and returned as it was sent. */
const FavoriteId = Type.Union([Text, Type.Integer()]);
const Label = Type.String({ minLength: 1, maxLength: MAX_ALIAS_CHARS });
// The capability checks how many labels and favorites there are: too many are `quota_exceeded`.
const Aliases = Type.Record(Type.String(), Label, {
  description: `AID to the label that is shown. A label belongs to one AID only. At most ${MAX_BOOK_ENTRIES} labels in all.`,
});
const OtherLabels = Type.Record(Type.String(), Type.Array(Label, { minItems: 1 }), {
  description: `AID to further labels of an agent in \`aliases\`, which can have ${MAX_LABELS_PER_AGENT} labels in all.`,
});
const Protocols = Type.Array(Text, { maxItems: MAX_PROTOCOLS });

export const AddressBookView = Type.Object({
  aliases: Aliases,
  other_labels: Type.Optional(OtherLabels),
  favorites: Type.Array(
    Type.Object({ id: FavoriteId, aid: AidText, skill: Text, protocols: Protocols, addedAt: Timestamp }),
  ),
});

export const addressBookOperations = declare(COMMON, {
  addressBookGet: {
    summary: 'Shows the address book. `ETag` identifies its version.',
    route: 'GET /node/address-book',
    output: AddressBookView,
  },

  addressBookPut: {
    summary:
      'Replaces the address book. With `If-Match`, fails with 412 if the book has changed. Without `other_labels`, agents in `aliases` keep their further labels.',
    route: 'PUT /node/address-book',
    body: closed({
      aliases: Aliases,
      other_labels: Type.Optional(OtherLabels),
      favorites: Type.Array(
        closed({
          id: Type.Optional(Type.Union([Text, Type.Integer()], { description: 'Default: the AID.' })),
          aid: Text,
          skill: Type.Optional(Text),
          protocols: Type.Optional(Protocols),
          addedAt: Type.Optional(Timestamp),
        }),
        { description: `At most ${MAX_BOOK_ENTRIES}.` },
      ),
    }),
    output: AddressBookView,
    errors: ['bad_aid', 'wrong_state', 'quota_exceeded'],
  },

  addressBookList: {
    summary: 'Lists the labels of the address book, for assistants.',
    route: 'GET',
    output: Type.Object({
      agents: Type.Array(Type.Object({ aid: AidText, labels: Type.Array(Label) })),
    }),
    tool: { name: 'svc_address_book', description: "The user's labels for agents." },
  },
});
