/** Opens the panel of another node through this one. */
import { useState } from 'preact/hooks';
import { t } from '../../lib/i18n.ts';
import { viewNode } from '../../lib/place.ts';
import { AidField } from '../../parts/aid-field.tsx';
import { Section } from '../../parts/basics.tsx';

export function OtherNode() {
  const [node, setNode] = useState('');
  return (
    <Section title={t('via.look')}>
      <form
        class="one"
        onSubmit={(event) => {
          event.preventDefault();
          viewNode(node, ['node']);
        }}
      >
        <p class="empty">{t('via.look.what')}</p>
        <AidField label={t('via.node')} value={node} onInput={setNode} />
        <button type="submit" class="main" disabled={node === ''}>
          {t('via.look')}
        </button>
      </form>
    </Section>
  );
}
