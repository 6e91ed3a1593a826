/**
 * Runs a simulation. Time and randomness are replaced before any other module is loaded, so everything else is imported
 * afterwards.
 */
const { seed } = await import('./take-over.ts');
const { main } = await import('./commands.ts');
await main(seed);
