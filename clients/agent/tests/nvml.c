/* What the agent asks of NVIDIA's library, answered out of the file that NVML_CARDS names: a line for each card, its UUID, its name, MiB of
   memory, MiB in use, degrees, hundredths busy, and 1 if it is divided. A card without a line has fallen off the bus. While there is a file
   beside it with the same name and .hangs, nothing is answered. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, GPU_IS_LOST = 15 };

struct card { char uuid[96], name[96]; unsigned long long total, used; unsigned degrees, busy, divided; };
struct memory { unsigned version; unsigned long long total, reserved, free, used; };
struct utilization { unsigned gpu, memory; };

/* Handles are names that outlive a card. */
static char known[16][96];

static int line(unsigned number, const char *uuid, struct card *found) {
  FILE *file = fopen(getenv("NVML_CARDS"), "r");
  struct card card;
  unsigned at = 0, hit = 0;
  if (!file) return 0;
  while (!hit && fscanf(file, " %95[^|]|%95[^|]|%llu|%llu|%u|%u|%u", card.uuid, card.name, &card.total, &card.used, &card.degrees, &card.busy, &card.divided) == 7)
    hit = uuid ? !strcmp(uuid, card.uuid) : at++ == number;
  fclose(file);
  if (hit) *found = card;
  return hit;
}

static int handle(struct card *card, void **device) {
  for (unsigned at = 0; at < 16; at++) {
    if (!known[at][0]) strcpy(known[at], card->uuid);
    if (!strcmp(known[at], card->uuid)) return *device = known[at], SUCCESS;
  }
  return NOT_FOUND;
}

int nvmlInit_v2(void) {
  char hangs[4096];
  snprintf(hangs, sizeof hangs, "%s.hangs", getenv("NVML_CARDS"));
  while (!access(hangs, F_OK)) usleep(50000);
  return SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }
int nvmlDeviceGetCount_v2(unsigned *count) {
  struct card card;
  for (*count = 0; line(*count, NULL, &card); ++*count) {}
  return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned number, void **device) {
  struct card card;
  return line(number, NULL, &card) ? handle(&card, device) : INVALID_ARGUMENT;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device) {
  struct card card;
  return line(0, uuid, &card) ? handle(&card, device) : NOT_FOUND;
}

#define CARD(device) struct card card; if (!line(0, device, &card)) return GPU_IS_LOST
int nvmlDeviceGetName(void *device, char *name, unsigned length) { CARD(device); snprintf(name, length, "%s", card.name); return SUCCESS; }
int nvmlDeviceGetUUID(void *device, char *uuid, unsigned length) { CARD(device); snprintf(uuid, length, "%s", card.uuid); return SUCCESS; }
int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory *memory) {
  CARD(device);
  if (memory->version != (sizeof *memory | 2u << 24)) return INVALID_ARGUMENT;
  memory->total = card.total << 20, memory->used = card.used << 20, memory->reserved = 0, memory->free = memory->total - memory->used;
  return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(void *device, struct utilization *rates) { CARD(device); rates->gpu = card.busy, rates->memory = 0; return SUCCESS; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *degrees) { CARD(device); *degrees = card.degrees; return sensor ? INVALID_ARGUMENT : SUCCESS; }
int nvmlDeviceGetMigMode(void *device, unsigned *current, unsigned *pending) { CARD(device); *current = *pending = card.divided; return SUCCESS; }
int nvmlDeviceIsMigDeviceHandle(void *device, unsigned *is) { CARD(device); *is = 0; return SUCCESS; }
