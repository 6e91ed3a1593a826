/**
 * Runs a simulation. Time and randomness are replaced before any other module is loaded, so everything else is imported
 * afterwards. Commands that only start simulations keep the time of the machine.
 */
const command = process.argv[2];
if (command === 'defects') await (await import('./defects.ts')).main();
else if (command === 'shrink') await (await import('./shrink.ts')).main();
else if (command === 'coverage') await (await import('./coverage.ts')).main();
else {
  const { seed } = await import('./take-over.ts');
  const { main } = await import('./commands.ts');
  await main(seed);
}
