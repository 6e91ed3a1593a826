/** The pages of a screen: a row of links, or a menu if the page is narrow. */
import { href } from '../lib/place.ts';

export interface Tab {
  readonly title: string;
  readonly path: readonly string[];
  readonly isCurrent: boolean;
}

export function Tabs({ label, tabs }: { readonly label: string; readonly tabs: readonly Tab[] }) {
  const links = tabs.map(({ title, path, isCurrent }) => (
    <a key={title} href={href(path)} {...(isCurrent ? { 'aria-current': 'page' } : {})}>
      {title}
    </a>
  ));
  return (
    <nav class="tabs" aria-label={label}>
      <div class="broad">{links}</div>
      <details class="menu narrow">
        <summary class="button">{tabs.find(({ isCurrent }) => isCurrent)?.title ?? label}</summary>
        <div>{links}</div>
      </details>
    </nav>
  );
}
