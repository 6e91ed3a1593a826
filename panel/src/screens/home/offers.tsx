/** File offers to an agent: download or decline. */
import { useState } from 'preact/hooks';
import { call, type Output } from '../../lib/api.ts';
import { t } from '../../lib/i18n.ts';
import { here } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { Called, Inline } from '../../parts/agent.tsx';
import { Bytes, T, UntrustedText } from '../../parts/basics.tsx';
import { act, confirm } from '../../parts/overlay.tsx';

type Offer = Output<'fileOfferList'>['offers'][number];

/** Most offers to show per agent. */
const SHOWN_OFFERS = 3;
/** Interval of the progress query, milliseconds. */
const PROGRESS_MS = 1_000;

interface OneProps {
  readonly aid: string;
  readonly offer: Offer;
}

/** The progress of a download, and a button to cancel it. The downloaded part is kept. */
function Coming({ aid, offer, stop }: OneProps & { readonly stop: () => void }) {
  const { value } = useQuery('fileOfferGet', { aid, id: offer.id }, PROGRESS_MS);
  const come = value?.received_bytes ?? offer.received_bytes ?? 0;
  return (
    <span class="uploading">
      <progress aria-label={t('offer.coming')} value={come} max={Math.max(1, offer.size)} />
      <button type="button" onClick={stop}>
        {t('cancel')}
      </button>
    </span>
  );
}

function Answers({ aid, offer }: OneProps) {
  const [coming, setComing] = useState<AbortController | null>(null);
  const { id } = offer;
  const take = async (): Promise<Output<'fileOfferAccept'>> => {
    const stopped = new AbortController();
    setComing(stopped);
    try {
      return await call(here().base, 'fileOfferAccept', { aid, id }, stopped.signal);
    } finally {
      setComing(null);
    }
  };
  if (coming !== null) return <Coming aid={aid} offer={offer} stop={() => coming.abort()} />;
  return (
    <span class="pair">
      {here().base === '' && (
        <button type="button" class="main" onClick={() => act(take, ({ path }) => t('offer.taken', { path }))}>
          {t('offer.take')}
        </button>
      )}{' '}
      <button
        type="button"
        onClick={() =>
          confirm({
            title: t('offer.decline'),
            text: t('offer.decline.what'),
            verb: t('offer.decline'),
            run: () => perform('fileOfferDecline', { aid, id }),
          })
        }
      >
        {t('offer.decline')}
      </button>
    </span>
  );
}

/** Open file offers to an agent. */
export function Offers({ aid }: { readonly aid: string }) {
  const { value } = useQuery('fileOfferList', { aid, direction: 'in' });
  return (
    <>
      {(value?.offers ?? []).slice(0, SHOWN_OFFERS).map((offer) => (
        <li key={offer.id}>
          <b class="hue" aria-hidden="true">
            ↓
          </b>
          <span class="grow">
            <Inline aid={offer.peer} />{' '}
            <T
              k="waiting.offered"
              agent={<Called aid={aid} />}
              file={<UntrustedText text={`“${offer.name}”`} />}
              size={<Bytes count={offer.size} />}
            />
            {offer.message !== undefined && (
              <>
                {' '}
                <span class="soft">
                  “<UntrustedText text={offer.message} />”
                </span>
              </>
            )}
          </span>
          <Answers aid={aid} offer={offer} />
        </li>
      ))}
    </>
  );
}
