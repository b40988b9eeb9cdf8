// A race that ThreadSanitizer must find: publish() with its release weakened to relaxed.
#define RONDO_PLANTED_RACE
#include "communicator/programs/message_race.hpp"

int main() { return rondo::pass_messages(); }
