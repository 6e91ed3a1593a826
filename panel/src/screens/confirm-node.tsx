/** A confirmation before this node connects to another one, because anyone can make a link to it. */
import { t } from '../lib/i18n.ts';
import { UntrustedText } from '../parts/basics.tsx';

interface Props {
  readonly node: string;
  readonly look: () => void;
}

export function ConfirmNode({ node, look }: Props) {
  return (
    <main>
      <h1>{t('via.ask')}</h1>
      <p class="lead">
        <code>
          <UntrustedText text={node} />
        </code>
      </p>
      <p>{t('via.ask.what')}</p>
      <div class="acts">
        <a class="button" href="#/">
          {t('via.back')}
        </a>
        <button type="button" onClick={look}>
          {t('via.go')}
        </button>
      </div>
    </main>
  );
}
