/** Opens the panel of another node through this one. */
import { useState } from 'preact/hooks';
import { t } from '../../lib/i18n.ts';
import { viewNode } from '../../lib/place.ts';
import { Field, Section } from '../../parts/basics.tsx';

export function OtherNode() {
  const [node, setNode] = useState('');
  return (
    <Section title={t('via.look')}>
      <form
        class="one"
        onSubmit={(event) => {
          event.preventDefault();
          viewNode(node.trim(), ['node']);
        }}
      >
        <p class="empty">{t('via.look.what')}</p>
        <Field label={t('via.node')} value={node} onInput={setNode} placeholder="aid1…" />
        <button type="submit" class="main" disabled={node.trim() === ''}>
          {t('via.look')}
        </button>
      </form>
    </Section>
  );
}
