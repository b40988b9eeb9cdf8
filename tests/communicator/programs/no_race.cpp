// The same as planted_race.cpp without the race.
#include "communicator/programs/message_race.hpp"

int main() { return rondo::pass_messages(); }
